#!/usr/bin/env bash
# Sweeps through submitit, and as a job array, on a real Slurm: one node, this machine, from Debian's packages. No root is needed.
#
#   a folder of its own -> munged, slurmctld and slurmd of this user -> test_cluster.sh with the tests of Slurm -> all are stopped
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
PATH=$PATH:/usr/sbin

fail() {
    echo "test_slurm.sh: $1" >&2
    exit 1
}
for program in munged slurmctld slurmd sbatch; do
    command -v "$program" >/dev/null || fail "$program is missing: apt install munge slurmctld slurmd slurm-client"
done

folder=$(mktemp -d)
export SLURM_CONF=$folder/slurm.conf

finish() {
    scancel --quiet --user="$(id -un)" 2>/dev/null || true
    for daemon in $(jobs -p | tac); do
        kill "$daemon" 2>/dev/null || true
        wait "$daemon" || true
    done
    rm -rf "$folder"
}
trap finish EXIT

# What asks munged for a credential reaches its socket.
chmod 711 "$folder"
mkdir "$folder/state" "$folder/spool"
(umask 077 && head -c 1024 /dev/urandom >"$folder/munge.key")
cat >"$SLURM_CONF" <<CONF
ClusterName=kvssd
SlurmctldHost=$(hostname -s)(127.0.0.1)
SlurmctldPort=26817
SlurmdPort=26818
SlurmUser=$(id -un)
SlurmdUser=$(id -un)
AuthType=auth/munge
AuthInfo=socket=$folder/munge.socket
StateSaveLocation=$folder/state
SlurmdSpoolDir=$folder/spool
SlurmctldPidFile=$folder/slurmctld.pid
SlurmdPidFile=$folder/slurmd.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
$(slurmd -C | head -n 1) NodeAddr=127.0.0.1
PartitionName=compute Nodes=ALL Default=YES
CONF

munged --foreground --key-file="$folder/munge.key" --socket="$folder/munge.socket" --pid-file="$folder/munged.pid" \
    --seed-file="$folder/munged.seed" &>"$folder/munged.log" &
slurmctld -D &>"$folder/slurmctld.log" &
slurmd -D &>"$folder/slurmd.log" &
until [[ $(timeout 5 sinfo --noheader --format=%T 2>/dev/null) == idle ]]; do
    ((SECONDS < 30)) || fail "Slurm does not come up: $(tail -n 3 "$folder"/*.log)"
    sleep 0.2
done

crates/py/test_cluster.sh crates/py/tests/test_slurm.py
