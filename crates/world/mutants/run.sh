#!/usr/bin/env bash
# Plants each fault of this folder in a copy of the tree, and has the world look for it.
#
#   crates/world/mutants/run.sh [NN ...]
#
# Each patch says what joint it breaks and who is to find it, in lines before the diff:
#   Joint: <words>
#   Finder: <scenario> <design> [<seed>]     the campaign of that scenario, from that seed on
#   Finder: test <package> <test> [<name>]   a test, where no scenario has what it takes; several lines are tried in turn
#
# The copy and its target folder stay for the next run, in MUTANTS_FOLDER. A mutant has MUTANTS_SECONDS for each finder, and the tree
# without any has MUTANTS_BASELINE_SECONDS for each scenario: nothing may be found there. 0 leaves that out.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../../.." && pwd)
folder=${MUTANTS_FOLDER:-${TMPDIR:-/tmp}/kvssd-mutants}
seconds=${MUTANTS_SECONDS:-600}
baseline_seconds=${MUTANTS_BASELINE_SECONDS:-20}
tree=$folder/tree
mkdir -p "$tree"
# What runs is found quickly enough with less optimisation, and is built in half the time.
export CARGO_TARGET_DIR=$folder/target CARGO_PROFILE_DEV_DEBUG=none CARGO_PROFILE_DEV_OPT_LEVEL=1 CARGO_INCREMENTAL=1
# The copy is no repository, whatever lies around it.
export GIT_CEILING_DIRECTORIES=$folder

# Makes the copy as the tree is. What is the same is left alone, so that it is not built again.
copy() {
    local file
    (cd "$root" && git ls-files -z --cached --others --exclude-standard) | while IFS= read -r -d '' file; do
        if [[ -f "$root/$file" ]] && ! cmp -s "$root/$file" "$tree/$file"; then
            mkdir -p "$(dirname "$tree/$file")"
            cp "$root/$file" "$tree/$file"
        fi
    done
}

# Runs a finder in the copy: 0 when it found something, 1 when not, 2 when it cannot be built.
look() {
    local log=$1 time=$2 package=kvssd-world test=all
    shift 2
    [[ $1 == test ]] && package=$2 test=$3
    (cd "$tree" && cargo test -p "$package" --test "$test" --no-run) >"$log" 2>&1 || return 2
    local program begin=$SECONDS status=0
    program=$(sed -n 's/.*Executable.*(\(.*\))$/\1/p' "$log" | tail -1)
    cd "$tree/crates/${package#kvssd-}"
    if [[ $1 == test ]]; then
        timeout "$time" "$program" "${@:4}" >"$log" 2>&1 || status=$?
        [[ $status -eq 0 ]] && return 1
        found="$2 $3 ${*:4} | $((SECONDS - begin)) s | $(sed -n '/panicked at/{n;p;q}' "$log" | cut -c 1-90)"
        return 0
    fi
    SCENARIO=$1 DESIGN=$2 WORLD_SEED=${3:-1} WORLD_SECONDS=$time timeout $((time + 120)) \
        "$program" --exact campaign::campaign --ignored --nocapture >"$log" 2>&1 || status=$?
    if grep -q '^LOSS' "$log"; then
        found=$(sed -n 's/^LOSS \(.* lives\) \(.*\) s: \(.*\)$/\1 | \2 s | \3/p' "$log" | head -1 | cut -c 1-150)
        return 0
    fi
    grep -q '^NOTHING' "$log" && return 1
    # It stopped, or hangs: no run of the tree does. Somebody who ends it has found nothing.
    [[ $status -eq 130 || $status -eq 137 || $status -eq 143 ]] && { echo "$1 was ended from outside" >&2; return 1; }
    found="$* | $((SECONDS - begin)) s | ended with $status"
}

copy
patches=("$here"/*.patch)
if [[ $# -gt 0 ]]; then
    patches=()
    for number in "$@"; do
        patches+=("$here/$number"*.patch)
    done
fi
if [[ $baseline_seconds -gt 0 ]]; then
    sed -n 's/^Finder: //p' "${patches[@]}" | grep -v '^test' | sort -u >"$folder/baseline"
    while read -r -a finder <&3; do
        if look "$folder/baseline.log" "$baseline_seconds" "${finder[@]}"; then
            echo "without any mutant: $found"
            exit 2
        fi
        grep -q '^NOTHING' "$folder/baseline.log" || { cat "$folder/baseline.log"; exit 2; }
        echo "without any mutant: $(grep '^NOTHING' "$folder/baseline.log")"
    done 3<"$folder/baseline"
fi
survivors=0
rm -rf "$folder/patches"
mkdir "$folder/patches"
cp "${patches[@]}" "$folder/patches"
for patch in "$folder"/patches/*; do
    name=$(basename "$patch" .patch)
    if ! git -C "$tree" apply "$patch"; then
        echo "| $name | DOES NOT APPLY |"
        survivors=$((survivors + 1))
        continue
    fi
    found=
    while read -r -a finder <&3; do
        status=0
        look "$folder/$name.log" "$seconds" "${finder[@]}" || status=$?
        [[ $status -eq 2 ]] && found="DOES NOT BUILD: $(grep -m 1 '^error' "$folder/$name.log")" && survivors=$((survivors + 1))
        [[ -n $found ]] && break
    done 3< <(sed -n 's/^Finder: //p' "$patch")
    git -C "$tree" apply -R "$patch"
    if [[ -z $found ]]; then
        found=SURVIVED
        survivors=$((survivors + 1))
    fi
    echo "| $name | $found |"
done
echo "${#patches[@]} mutants, $survivors not found"
[[ $survivors -eq 0 ]]
