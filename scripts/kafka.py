"""Kafka for tests and trials: fetch jars with Maven, and run a single broker (KRaft mode) on loopback.

    python scripts/kafka.py connector            the jars that Spark needs, for `spark.jars`, comma-separated
    python scripts/kafka.py start FOLDER         start a broker with its data in FOLDER; prints host:port
    python scripts/kafka.py stop FOLDER          stop it
    python scripts/kafka.py produce HOST:PORT TOPIC < lines
    python scripts/kafka.py consume HOST:PORT TOPIC

Jars are fetched once, by their coordinates, into .cache/jars. Exit code 3: a tool is missing or the jars
cannot be fetched, and the message says what is missing.
"""

from __future__ import annotations

import base64
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import uuid
from importlib.metadata import version
from pathlib import Path

CACHE = Path(__file__).resolve().parents[1] / ".cache" / "jars"
BROKER = "4.1.1"
UNAVAILABLE = 3
"""The exit code where a tool or a jar cannot be had."""
STOCKED = ("4.2.0", "4.1.0-preview1")
"""The newest connector and token provider seen; used where Maven lacks those of PySpark's version."""
SPARK_HAS = ("scala-", "slf4j-", "lz4-java", "snappy-java", "zstd-jni", "jsr305", "jackson-")
"""Libraries that come with Spark; a second copy may only do harm."""


class Unavailable(Exception):
    """Something that this script needs is not there."""


def main(arguments: list[str]) -> int:
    """Run one of the commands; the exit code."""
    match arguments:
        case ["connector"]:
            print(",".join(str(jar) for jar in connector_jars()))
        case ["start", folder]:
            print(start(Path(folder)))
        case ["stop", folder]:
            stop(Path(folder))
        case ["produce", server, topic]:
            keyed = ("--property", "parse.key=true", "--property", "key.separator=|")
            return _tool("ConsoleProducer", "--bootstrap-server", server, "--topic", topic, *keyed)
        case ["consume", server, topic]:
            reading = ("--from-beginning", "--timeout-ms", "5000")
            return _tool("ConsoleConsumer", "--bootstrap-server", server, "--topic", topic, *reading)
        case _:
            print(__doc__, file=sys.stderr)
            return 2
    return 0


def connector_jars() -> list[Path]:
    """Spark's Kafka connector of PySpark's version, or the nearest that Maven has, and what it needs."""
    spark = version("pyspark")
    folder = CACHE / f"connector-{spark}"
    if not folder.is_dir():
        try:
            _fetch(folder, [_spark("sql-kafka-0-10", spark)])
        except Unavailable as error:
            connector, token = STOCKED
            print(f"{error}\nTaking the connector {connector} instead.", file=sys.stderr)
            own = "<exclusion><groupId>org.apache.spark</groupId><artifactId>*</artifactId></exclusion>"
            all_ = "<exclusion><groupId>*</groupId><artifactId>*</artifactId></exclusion>"
            _fetch(
                folder,
                [
                    _spark("sql-kafka-0-10", connector, own),
                    _spark("token-provider-kafka-0-10", token, all_),
                ],
            )
    return sorted(jar for jar in folder.glob("*.jar") if not jar.name.startswith(SPARK_HAS))


def broker_jars() -> Path:
    """The folder with the broker's jars and those of the command line tools."""
    folder = CACHE / f"broker-{BROKER}"
    if not folder.is_dir():
        names = ("kafka_2.13", "kafka-tools")
        _fetch(folder, [_dependency("org.apache.kafka", name, BROKER) for name in names])
    return folder


def _spark(name: str, number: str, excluded: str = "") -> str:
    return _dependency("org.apache.spark", f"spark-{name}_2.13", number, excluded)


def _dependency(group: str, name: str, number: str, excluded: str = "") -> str:
    return (
        f"<dependency><groupId>{group}</groupId><artifactId>{name}</artifactId><version>{number}</version>"
        f"<exclusions>{excluded}</exclusions></dependency>"
    )


def _fetch(folder: Path, dependencies: list[str]) -> None:
    """Let Maven copy these and all that they need; the folder appears whole or not at all."""
    maven = shutil.which("mvn")
    if maven is None:
        raise Unavailable("there is no mvn. Install Maven (Debian: apt-get install maven).")
    CACHE.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=CACHE, prefix="fetching-") as scratch:
        pom, jars = Path(scratch, "pom.xml"), Path(scratch, "jars")
        pom.write_text(
            "<project><modelVersion>4.0.0</modelVersion><groupId>windowpane</groupId>"
            "<artifactId>jars</artifactId><version>1</version><packaging>pom</packaging>"
            f"<dependencies>{''.join(dependencies)}</dependencies></project>",
            "utf-8",
        )
        goal = [maven, "-q", "-B", "-f", str(pom), "dependency:copy-dependencies"]
        options = [f"-DoutputDirectory={jars}", "-DincludeScope=runtime"]
        done = subprocess.run([*goal, *options], capture_output=True, text=True, check=False)  # noqa: S603
        if done.returncode or not jars.is_dir():
            lines = [line for line in (done.stdout + done.stderr).splitlines() if "ERROR" in line]
            told = re.sub(r"\x1b\[[\d;]*m|\bhttps?://\S+", "", lines[0] if lines else done.stderr)
            raise Unavailable(f"Maven cannot fetch the jars: {told[:400]}")
        if not folder.is_dir():
            jars.rename(folder)


def java() -> str:
    """The Java program."""
    home = os.environ.get("JAVA_HOME")
    found = shutil.which(str(Path(home, "bin", "java"))) if home else shutil.which("java")
    if found is None:
        raise Unavailable("there is no java. Run: make java")
    return found


def _tool(name: str, *arguments: str) -> int:
    """Run one of Kafka's command line tools on this program's standard input and output."""
    command = _java(f"org.apache.kafka.tools.{_home(name)}{name}", *arguments)
    return subprocess.run(command, stderr=subprocess.DEVNULL, check=False).returncode  # noqa: S603


def _home(name: str) -> str:
    return "consumer." if name == "ConsoleConsumer" else ""


def _java(program: str, *arguments: str) -> list[str]:
    quiet = ("-Xmx384m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
    return [java(), *quiet, "-cp", f"{broker_jars()}/*", program, *arguments]


def start(folder: Path) -> str:
    """Start a broker whose data lies in the folder; where it listens."""
    folder.mkdir(parents=True, exist_ok=True)
    settings = folder / "server.properties"
    if settings.exists():
        address = _address(settings)
    else:
        ports = free_ports(2)
        address = f"127.0.0.1:{ports[0]}"
        settings.write_text(_settings(folder, *ports), "utf-8")
        cluster = base64.urlsafe_b64encode(b"\0" + uuid.uuid4().bytes[1:]).decode().rstrip("=")
        format_ = _java("kafka.tools.StorageTool", "format", "-t", cluster, "-c", str(settings))
        subprocess.run(format_, check=True, capture_output=True)  # noqa: S603
    with (folder / "broker.log").open("ab") as log:
        broker = subprocess.Popen(  # noqa: S603
            _java("kafka.Kafka", str(settings)), stdout=log, stderr=log, start_new_session=True
        )
    (folder / "pid").write_text(str(broker.pid), "utf-8")
    _await(address, broker, folder / "broker.log")
    return address


def _settings(folder: Path, port: int, controller: int) -> str:
    values = {
        "process.roles": "broker,controller",
        "node.id": "1",
        "controller.quorum.voters": f"1@127.0.0.1:{controller}",
        "controller.listener.names": "CONTROLLER",
        "listeners": f"PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}",
        "advertised.listeners": f"PLAINTEXT://127.0.0.1:{port}",
        "log.dirs": str(folder / "data"),
        "num.partitions": "3",
        "offsets.topic.num.partitions": "1",
        "offsets.topic.replication.factor": "1",
        "transaction.state.log.replication.factor": "1",
        "transaction.state.log.min.isr": "1",
        "group.initial.rebalance.delay.ms": "0",
    }
    return "".join(f"{key}={value}\n" for key, value in values.items())


def _address(settings: Path) -> str:
    prefix = "advertised.listeners=PLAINTEXT://"
    lines = settings.read_text("utf-8").splitlines()
    return next(line.removeprefix(prefix) for line in lines if line.startswith(prefix))


def _await(address: str, broker: subprocess.Popen[bytes], log: Path, seconds: float = 60) -> None:
    host, port = address.split(":")
    end = time.monotonic() + seconds
    while time.monotonic() < end and broker.poll() is None:
        try:
            socket.create_connection((host, int(port)), timeout=1).close()
        except OSError:
            time.sleep(0.1)
        else:
            return
    broker.kill()
    raise Unavailable(f"the broker did not start; its log is {log}")


def stop(folder: Path, seconds: float = 15) -> None:
    """Stop the broker of the folder, if it runs."""
    file = folder / "pid"
    if not file.exists():
        return
    pid = int(file.read_text("utf-8"))
    for number in (signal.SIGTERM, signal.SIGKILL):
        end = time.monotonic() + seconds
        if _runs(pid, folder):
            os.kill(pid, number)
        while _runs(pid, folder) and time.monotonic() < end:
            time.sleep(0.1)
    file.unlink()


def _runs(pid: int, folder: Path) -> bool:
    """Whether the process is this folder's broker; a number may have gone to another process since."""
    try:
        command = Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False
    return str(folder / "server.properties").encode() in command


def free_ports(count: int) -> list[int]:
    """Ports of loopback that nobody uses now."""
    held = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [int(one.getsockname()[1]) for one in held]
    for one in held:
        one.close()
    return ports


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except Unavailable as problem:
        print(problem, file=sys.stderr)
        sys.exit(UNAVAILABLE)
