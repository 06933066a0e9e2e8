"""A real Slurm of one node in a folder of its own: started for tests, always stopped.

It has its own ports, keys and files, so it neither needs nor disturbs a Slurm of the machine.
"""

import contextlib
import os
import pwd
import re
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "srun", "squeue", "scontrol", "sinfo")
STARTED_S = 120.0
STOPPED_S = 10.0

CONFIGURATION = """\
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ports[0]}
SlurmdPort={ports[1]}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket,cred_expire=5
CryptoType=crypto/munge
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SchedulerType=sched/backfill
SchedulerParameters=sched_interval=1,bf_interval=1,requeue_delay=1
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU_Memory
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
DefMemPerCPU=1000
MpiDefault=none
ReturnToService=2
InactiveLimit=0
KillWait=5
MinJobAge=300
NodeName={host} NodeAddr=127.0.0.1 CPUs={cores} RealMemory={memory} State=UNKNOWN
PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


class CannotStartError(Exception):
    """Why there is no Slurm here."""


@contextmanager
def cluster(folder: Path) -> Iterator[Mapping[str, str]]:
    """A running Slurm; yields the environment variables that lead its clients to it.

    Args:
        folder: an empty one; its path must be short enough for a socket.

    Raises:
        CannotStartError: if programs are absent or a service does not come up in time.
    """
    absent = [name for name in PROGRAMS if _program(name) is None]
    if absent:
        raise CannotStartError(f"no {', '.join(absent)} on this machine")
    _write_files(folder)
    variables = {"SLURM_CONF": str(folder / "slurm.conf")}
    services: list[subprocess.Popen[bytes]] = []
    try:
        services.append(_start(folder, "munged", *_munge_options(folder)))
        _wait("munged", services[-1], (folder / "munge.socket").exists)
        services.append(_start(folder, "slurmctld", "-D", "-c", "-f", variables["SLURM_CONF"]))
        services.append(_start(folder, "slurmd", "-D", "-f", variables["SLURM_CONF"]))
        _wait("slurmd", services[-1], lambda: _is_idle(variables))
        yield variables
    finally:
        _cancel_all(variables)
        for service in reversed(services):
            _stop(service)


def _program(name: str) -> str | None:
    return shutil.which(name, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")


def _write_files(folder: Path) -> None:
    folder.chmod(0o755)  # munged refuses a folder that others may write
    for name in ("state", "spool"):
        (folder / name).mkdir()
    (folder / "munge.key").write_bytes(os.urandom(1024))
    (folder / "munge.key").chmod(0o600)
    (folder / "slurm.conf").write_text(
        CONFIGURATION.format(
            host=socket.gethostname().partition(".")[0],
            ports=_free_ports(2),
            user=pwd.getpwuid(os.getuid()).pw_name,
            folder=folder,
            cores=os.cpu_count(),
            memory=_memory_mb(),
        )
    )


def _memory_mb() -> int:
    """What the node daemon finds: a node with less than it claims is never used."""
    done = subprocess.run([str(_program("slurmd")), "-C"], capture_output=True, text=True)
    match = re.search(r"RealMemory=(\d+)", done.stdout)
    if not match:
        raise CannotStartError(f"slurmd -C does not say how much memory there is: {done.stderr}")
    return int(match[1])


def _free_ports(n: int) -> list[int]:
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(n)]
        for opened in sockets:
            opened.bind(("127.0.0.1", 0))
        return [opened.getsockname()[1] for opened in sockets]


def _munge_options(folder: Path) -> list[str]:
    places = {"socket": "socket", "key-file": "key", "pid-file": "pid", "seed-file": "seed"}
    return [
        "--foreground",
        *[f"--{option}={folder}/munge.{name}" for option, name in places.items()],
        f"--log-file={folder}/munge.log",
        "--force",  # a folder for trials may lie below one that others can write
        "--num-threads=2",
    ]


def _start(folder: Path, name: str, *options: str) -> subprocess.Popen[bytes]:
    with (folder / f"{name}.out").open("wb") as out:
        return subprocess.Popen(
            [str(_program(name)), *options],
            stdout=out,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # Ctrl-C ends the tests, which then end the services
        )


def _wait(name: str, service: subprocess.Popen[bytes], ready: object) -> None:
    deadline = time.monotonic() + STARTED_S
    while not ready():
        if service.poll() is not None:
            raise CannotStartError(f"{name} ended at once with {service.returncode}")
        if time.monotonic() > deadline:
            raise CannotStartError(f"{name} was not ready within {STARTED_S:.0f} s")
        time.sleep(0.1)


def _is_idle(variables: Mapping[str, str]) -> bool:
    return "idle" in client(variables, "sinfo", "--noheader", "--format=%T")


def client(variables: Mapping[str, str], *command: str) -> str:
    """What a command of Slurm prints; empty if it does not answer in time."""
    try:
        done = subprocess.run(
            [*command], env={**os.environ, **variables}, capture_output=True, text=True, timeout=60
        )
    except subprocess.TimeoutExpired:
        return ""
    return done.stdout


def _cancel_all(variables: Mapping[str, str]) -> None:
    """End what still runs, so that no process outlives the tests."""
    jobs = client(variables, "squeue", "--noheader", "--format=%i").split()
    if not jobs:
        return
    client(variables, "scancel", "--signal=KILL", "--full", *jobs)
    client(variables, "scancel", *jobs)
    deadline = time.monotonic() + STOPPED_S
    while client(variables, "squeue", "--noheader") and time.monotonic() < deadline:
        time.sleep(0.2)


def _stop(service: subprocess.Popen[bytes]) -> None:
    service.send_signal(signal.SIGTERM)
    try:
        service.wait(STOPPED_S)
    except subprocess.TimeoutExpired:
        service.kill()
        service.wait()
