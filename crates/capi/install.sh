#!/usr/bin/env bash
# Builds the C library and installs it: headers, libkvssd.a, libkvssd.so.0 (its SONAME) and kvssd.pc.
#
#   crates/capi/install.sh PREFIX        such as /usr/local, or a folder that packages are made from with DESTDIR set
#
#   cc $(pkg-config --cflags kvssd) program.c $(pkg-config --libs kvssd)      with PREFIX/lib/pkgconfig in PKG_CONFIG_PATH
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
[[ $# -eq 1 && $1 == /* ]] || { echo "usage: crates/capi/install.sh PREFIX (a whole path)" >&2; exit 2; }
prefix=$1 to=${DESTDIR:-}$1 major=0
version=$(sed -n 's/^version = "\(.*\)"/\1/p' "$here/../../Cargo.toml" | head -1)
built=${CARGO_TARGET_DIR:-$here/../../target}/${KVSSD_PROFILE:-release}
profile=${KVSSD_PROFILE:-release}
cd "$here"
# A library that stays where it was built has no SONAME: programs find it by its file.
cargo rustc --locked --lib --profile "${profile/#debug/dev}" --crate-type cdylib -- \
    -C "link-arg=-Wl,-soname,libkvssd.so.$major"
install -d "$to/include" "$to/lib/pkgconfig"
install -m 755 "$built/libkvssd.so" "$to/lib/libkvssd.so.$version"
cargo build --locked --lib --profile "${profile/#debug/dev}"
install -m 644 "$built/libkvssd.a" "$to/lib/libkvssd.a"
install -m 644 include/*.h "$to/include"
ln -sf "libkvssd.so.$version" "$to/lib/libkvssd.so.$major"
ln -sf "libkvssd.so.$major" "$to/lib/libkvssd.so"
# pkg-config ends a path at a space.
cat >"$to/lib/pkgconfig/kvssd.pc" <<END
prefix=${prefix// /\\ }
libdir=\${prefix}/lib
includedir=\${prefix}/include

Name: kvssd
Description: A key-value SSD in a file or over NVMe/TCP, with the SNIA key-value API
Version: $version
Cflags: -I\${includedir}
Libs: -L\${libdir} -lkvssd -pthread
Libs.private: -ldl -lm
END
echo "installed libkvssd $version in $prefix"
