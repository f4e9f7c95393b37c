"""Renders what keeps a server or real-time paths running: a systemd unit, a Kubernetes manifest or a Compose file, to review and apply.

All restart the command when it ends, and stop it with SIGTERM: after the current batch, or when the running requests have finished.
"""

from __future__ import annotations

import getpass
import re
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from lake.cli.arguments import Kind
from lake.config.loader import load, variables
from lake.errors import ConfigError

_ENDS_WITHIN = 120
_STARTS_WITHIN = 1800
_IMAGE = "REGISTRY/lakejoin:TAG"
_METRICS = 9090
SERVER_PORT = 8471
_USER = 10001
_DRAIN = 60
_TEMPORARY_PLACES = ("HOME", "TMPDIR", "SPARK_LOCAL_DIRS")
_TEMPORARY = "/tmp"
"""The only folder of the container that can be written: a volume of its own."""
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


@dataclass(frozen=True)
class Service:
    """What is to be kept running. `on_host`, `in_container`: the words of the command after the configuration; `variables`: the environment
    variables that it needs; `ports`: by their names; `probes`: of Kubernetes (startup, liveness, readiness), and the Python program that
    finds out whether it runs; `unit`: more lines for systemd; `notes`: for the reader of a manifest."""

    name: str
    description: str
    on_host: Sequence[str]
    in_container: Sequence[str]
    variables: Sequence[str]
    ports: Mapping[str, int]
    probes: Mapping[str, Mapping[str, Any]]
    check: str
    unit: Sequence[str] = ()
    notes: Sequence[str] = ()
    cluster_name: str = ""


def render(kind: Kind, config: Path, service: Service) -> str:
    """A systemd unit, a Kubernetes manifest, or a file for Docker Compose. Raises ConfigError if a path can't be written in one."""
    make = {Kind.systemd: _unit, Kind.kubernetes: _manifest, Kind.compose: _compose}[kind]
    return make(config, service)


def realtime_service(config: Path, env: str | None, view: str | None, metrics_port: int | None) -> Service:
    """The real-time path of one view, or (None) of all with `realtime`. Raises ConfigError if the configuration is not valid or has no such
    view."""
    loaded = load(config, env)
    loaded.in_realtime(view)
    command = [*(["--env", env] if env is not None else []), "realtime", view if view is not None else "--all"]
    port = metrics_port or _METRICS
    shown = metrics_port is not None
    check = f"import urllib.request; urllib.request.urlopen('http://127.0.0.1:{port}/metrics', timeout=10)"
    probe = {"exec": {"command": ["python3", "-c", check]}, "timeoutSeconds": 15, "periodSeconds": 30}
    elsewhere = "Metrics are served on all addresses of the pod, for Prometheus. A NetworkPolicy can limit who reaches them."
    return Service(
        name="realtime",
        description="Lakejoin real-time paths",
        on_host=[*command, *(["--metrics-port", str(port)] if shown else [])],
        in_container=[*command, "--metrics-port", str(port), *(["--metrics-address", "0.0.0.0"] if shown else [])],
        variables=sorted(variables(config, env)),
        ports={"metrics": port} if shown else {},
        probes=_probes(probe),
        check=check,
        unit=["# Metrics are served on 127.0.0.1 only; --metrics-address serves them elsewhere."] if shown else [],
        notes=[elsewhere] if shown else [],
    )


def server_service(config: Path, env: str | None, port: int) -> Service:
    """`lakejoin serve`: on a host for its user's commands, in a container for clients with a token. Raises ConfigError if the
    configuration is not valid."""
    load(config, env)
    command = [*(["--env", env] if env is not None else []), "serve", "--drain", str(_DRAIN)]
    name = "lakejoin-server"
    probe = {"httpGet": {"path": "/healthz", "port": port, "httpHeaders": [{"name": "Host", "value": name}]}, "periodSeconds": 10}
    ready = {**probe, "httpGet": {**probe["httpGet"], "path": "/readyz"}}  # type: ignore[dict-item]
    check = f"import urllib.request as r; r.urlopen(r.Request('http://127.0.0.1:{port}/readyz', headers={{'Host': '{name}'}}), timeout=10)"
    return Service(
        name="server",
        description="Lakejoin server",
        on_host=command,
        in_container=[*command, "--listen", f"0.0.0.0:{port}", "--host-name", name],
        variables=sorted({*variables(config, env), "LAKEJOIN_TOKEN"}),
        ports={"http": port},
        probes={
            "startupProbe": {**probe, "failureThreshold": 30},
            "livenessProbe": {**probe, "failureThreshold": 3},
            "readinessProbe": ready,
        },
        check=check,
        unit=[
            "# Commands of this user find the server if they have the same LAKEJOIN_RUNTIME_DIR.",
            "RuntimeDirectory=lakejoin",
            "RuntimeDirectoryMode=0700",
            "Environment=LAKEJOIN_RUNTIME_DIR=/run/lakejoin",
        ],
        notes=[
            f"Clients: lakejoin --server http://{name}:{port} ..., with the token in LAKEJOIN_TOKEN (openssl rand -hex 32).",
            "Tokens and rows travel unencrypted in the cluster unless a mesh encrypts them, or --tls-certificate and --tls-key are added.",
        ],
        cluster_name=name,
    )


def _probes(probe: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """The same probe three times, patient while the process starts."""
    return {
        "startupProbe": {**probe, "failureThreshold": _STARTS_WITHIN // 30},
        "livenessProbe": {**probe, "failureThreshold": 5},
        "readinessProbe": probe,
    }


def systemd_word(text: str) -> str:
    """A word of an ExecStart= that starts with a colon (no $VARIABLES): in double quotes and escaped."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%")
    return '"' + _CONTROL.sub(lambda found: f"\\x{ord(found[0]):02x}", escaped) + '"'


def systemd_value(text: str) -> str:
    """A whole value, which systemd reads without quotes, such as that of WorkingDirectory=. Raises ConfigError if it can't be written."""
    if _CONTROL.search(text) or text != text.strip() or text.endswith("\\") or text[:1] in ("'", '"'):
        raise ConfigError(
            f"{text!r} can't be a value in a systemd unit: it has control characters, starts with a space or a quote, or ends with a "
            "space or a backslash. Rename it."
        )
    return text.replace("%", "%%")


def _unit(config: Path, service: Service) -> str:
    file = config.resolve()
    run = [sys.executable, "-m", "lake.cli", "--config", str(file), *service.on_host]
    needed = [name for name in service.variables if name != "LAKEJOIN_TOKEN"]  # on a host the server listens on a socket only
    secrets = [f"# {', '.join(map(_shell, needed))}: one a line", "EnvironmentFile=/etc/lakejoin/environment"] if needed else []
    return "\n".join(
        [
            "[Unit]",
            f"Description={service.description}",
            "After=network-online.target",
            "Wants=network-online.target",
            "StartLimitIntervalSec=0",
            "",
            "[Service]",
            f"User={systemd_value(getpass.getuser())}",
            f"WorkingDirectory={systemd_value(str(file.parent))}",
            *secrets,
            *service.unit,
            f"ExecStart=:{' '.join(map(systemd_word, run))}",
            "NoNewPrivileges=true",
            "PrivateTmp=true",
            "KillSignal=SIGTERM",
            "KillMode=mixed",
            f"TimeoutStopSec={_ENDS_WITHIN}",
            "Restart=always",
            "RestartSec=30",
            "",
            "[Install]",
            "WantedBy=multi-user.target",
        ]
    )


def _manifest(config: Path, service: Service) -> str:
    labels = {"app.kubernetes.io/name": "lakejoin", "app.kubernetes.io/component": service.name}
    pod = {
        "automountServiceAccountToken": False,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": _USER,
            "runAsGroup": _USER,
            "fsGroup": _USER,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "terminationGracePeriodSeconds": _ENDS_WITHIN,
        "containers": [_container(config, service)],
        "volumes": [{"name": "config", "configMap": {"name": "lakejoin"}}, {"name": "temporary", "emptyDir": {}}],
    }
    documents: list[Mapping[str, Any]] = [
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": f"lakejoin-{service.name}", "labels": dict(labels)},
            "spec": {
                "replicas": 1,
                "strategy": {"type": "Recreate"},  # one process at a time: a lease allows no more, and a second server would be of no use
                "selector": {"matchLabels": dict(labels)},
                "template": {"metadata": {"labels": dict(labels)}, "spec": pod},
            },
        }
    ]
    if service.cluster_name:
        ports = [{"name": name, "port": port} for name, port in service.ports.items()]
        spec = {"selector": dict(labels), "ports": ports}
        documents.append({"apiVersion": "v1", "kind": "Service", "metadata": {"name": service.cluster_name}, "spec": spec})
    notes = [f"kubectl create configmap lakejoin --from-file={_shell(f'{_key(config)}={config}')}"]
    if service.variables:
        notes.append(f"kubectl create secret generic lakejoin{''.join(f' --from-literal={_shell(v)}=...' for v in service.variables)}")
    return _commented([*notes, *service.notes], yaml.safe_dump_all(documents, sort_keys=False))


def _container(config: Path, service: Service) -> dict[str, Any]:
    words = ["lakejoin", "--config", f"/etc/lakejoin/{_key(config)}", *service.in_container]
    return {
        "name": service.name,
        "image": _IMAGE,  # with Python, Java and the lakejoin package
        "command": [word.replace("$", "$$") for word in words],  # Kubernetes replaces $(VARIABLES), and $$ by $
        **({"envFrom": [{"secretRef": {"name": "lakejoin"}}]} if service.variables else {}),
        "env": [{"name": name, "value": _TEMPORARY} for name in _TEMPORARY_PLACES],
        **({"ports": [{"name": name, "containerPort": port} for name, port in service.ports.items()]} if service.ports else {}),
        **service.probes,
        "resources": {"requests": {"cpu": "2", "memory": "6Gi"}, "limits": {"cpu": "4", "memory": "6Gi"}},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "readOnlyRootFilesystem": True,
        },
        "volumeMounts": [
            {"name": "config", "mountPath": "/etc/lakejoin", "readOnly": True},
            {"name": "temporary", "mountPath": _TEMPORARY},
        ],
    }


def _compose(config: Path, service: Service) -> str:
    file = config.resolve()
    words = ["lakejoin", "--config", f"/etc/lakejoin/{_key(config)}", *service.in_container]
    container = {
        "image": _IMAGE,
        "command": [_plain(word) for word in words],
        "user": f"{_USER}:{_USER}",
        "environment": {
            **dict.fromkeys(_TEMPORARY_PLACES, _TEMPORARY),
            **dict.fromkeys(service.variables),
        },  # None: as in the shell of compose
        "volumes": [{"type": "bind", "source": _plain(str(file)), "target": f"/etc/lakejoin/{_key(config)}", "read_only": True}],
        "ports": [f"127.0.0.1:{port}:{port}" for port in service.ports.values()],
        "read_only": True,
        "tmpfs": [_TEMPORARY],
        "cap_drop": ["ALL"],
        "security_opt": ["no-new-privileges:true"],
        "cpus": 4,
        "mem_limit": "6g",
        "restart": "unless-stopped",
        "stop_grace_period": f"{_ENDS_WITHIN}s",
        "healthcheck": {"test": ["CMD", "python3", "-c", _plain(service.check)], "interval": "30s", "timeout": "15s", "start_period": "5m"},
    }
    notes = ["Add the folders of the tables under `volumes`, if they are on this machine."]
    if service.variables:
        notes.append(f"Set these environment variables: {', '.join(map(_shell, service.variables))}.")
    return _commented(notes, yaml.safe_dump({"services": {f"lakejoin-{service.name}": container}}, sort_keys=False))


def _plain(text: str) -> str:
    """A text in which Compose replaces no $VARIABLE."""
    return text.replace("$", "$$")


def _commented(notes: Sequence[str], text: str) -> str:
    return "\n".join([*(f"# {note}" for note in notes), text]).rstrip()


def _key(config: Path) -> str:
    """The name of the file in a ConfigMap, whose keys are letters, digits, -, _ and dots only."""
    return re.sub(r"[^A-Za-z0-9._-]", "_", config.name)


def _shell(text: str) -> str:
    """A word of a command in a comment: quoted for the shell, on one line."""
    if text.isprintable():
        return shlex.quote(text)
    return "$'" + "".join(c if c.isprintable() and c not in "'\\" else "".join(f"\\x{b:02x}" for b in c.encode()) for c in text) + "'"
