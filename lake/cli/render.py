"""Renders what keeps real-time paths running without a scheduler: a systemd unit or a Kubernetes manifest, to review and apply.

Both restart `lakejoin realtime` when it ends, and stop it with SIGTERM, after the current batch.
"""

from __future__ import annotations

import getpass
import re
import shlex
import sys
from collections.abc import Mapping, Sequence
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
_USER = 10001
_TEMPORARY = "/tmp"
"""The only folder of the container that can be written: a volume of its own."""
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


def render(kind: Kind, config: Path, env: str | None, view: str | None, metrics_port: int | None) -> str:
    """For one view, or (None) for all with `realtime`. Raises ConfigError if the configuration is not valid or has no such view."""
    loaded = load(config, env)
    loaded.in_realtime(view)
    command = [*(["--env", env] if env is not None else []), "realtime", view if view is not None else "--all"]
    make = _unit if kind is Kind.systemd else _manifest
    return make(config, command, sorted(variables(config, env)), metrics_port)


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


def _unit(config: Path, command: Sequence[str], needed: Sequence[str], metrics_port: int | None) -> str:
    file, metrics = config.resolve(), ["--metrics-port", str(metrics_port)] if metrics_port is not None else []
    run = [sys.executable, "-m", "lake.cli", "--config", str(file), *command, *metrics]
    secrets = [f"# {', '.join(map(_shell, needed))}: one a line", "EnvironmentFile=/etc/lakejoin/environment"] if needed else []
    shown = ["# Metrics are served on 127.0.0.1 only; --metrics-address serves them elsewhere."] if metrics else []
    return "\n".join(
        [
            "[Unit]",
            "Description=Lakejoin real-time paths",
            "After=network-online.target",
            "Wants=network-online.target",
            "StartLimitIntervalSec=0",
            "",
            "[Service]",
            f"User={systemd_value(getpass.getuser())}",
            f"WorkingDirectory={systemd_value(str(file.parent))}",
            *secrets,
            *shown,
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


def _manifest(config: Path, command: Sequence[str], needed: Sequence[str], metrics_port: int | None) -> str:
    labels = {"app.kubernetes.io/name": "lakejoin", "app.kubernetes.io/component": "realtime"}
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
        "containers": [_container(config, command, needed, metrics_port)],
        "volumes": [{"name": "config", "configMap": {"name": "lakejoin"}}, {"name": "temporary", "emptyDir": {}}],
    }
    manifest: Mapping[str, Any] = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "lakejoin-realtime", "labels": dict(labels)},
        "spec": {
            "replicas": 1,
            "strategy": {"type": "Recreate"},  # the lease lets one process at a time run a view
            "selector": {"matchLabels": dict(labels)},
            "template": {"metadata": {"labels": dict(labels)}, "spec": pod},
        },
    }
    notes = [f"kubectl create configmap lakejoin --from-file={_shell(f'{_key(config)}={config}')}"]
    if needed:
        notes.append(f"kubectl create secret generic lakejoin{''.join(f' --from-literal={_shell(v)}=...' for v in needed)}")
    if metrics_port is not None:
        notes.append("Metrics are served on all addresses of the pod, for Prometheus. A NetworkPolicy can limit who reaches them.")
    return "\n".join([*(f"# {note}" for note in notes), yaml.safe_dump(manifest, sort_keys=False)]).rstrip()


def _container(config: Path, command: Sequence[str], needed: Sequence[str], metrics_port: int | None) -> dict[str, Any]:
    port = metrics_port or _METRICS
    answers = f"import urllib.request; urllib.request.urlopen('http://127.0.0.1:{port}/metrics', timeout=10)"
    probe = {"exec": {"command": ["python3", "-c", answers]}, "timeoutSeconds": 15, "periodSeconds": 30}
    metrics = ["--metrics-port", str(port), *([] if metrics_port is None else ["--metrics-address", "0.0.0.0"])]
    words = ["lakejoin", "--config", f"/etc/lakejoin/{_key(config)}", *command, *metrics]
    return {
        "name": "realtime",
        "image": _IMAGE,  # with Python, Java and the lakejoin package
        "command": [word.replace("$", "$$") for word in words],  # Kubernetes replaces $(VARIABLES), and $$ by $
        **({"envFrom": [{"secretRef": {"name": "lakejoin"}}]} if needed else {}),
        "env": [{"name": name, "value": _TEMPORARY} for name in ("HOME", "TMPDIR", "SPARK_LOCAL_DIRS")],
        **({"ports": [{"name": "metrics", "containerPort": port}]} if metrics_port is not None else {}),
        "startupProbe": {**probe, "failureThreshold": _STARTS_WITHIN // 30},
        "livenessProbe": {**probe, "failureThreshold": 5},
        "readinessProbe": probe,
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


def _key(config: Path) -> str:
    """The name of the file in a ConfigMap, whose keys are letters, digits, -, _ and dots only."""
    return re.sub(r"[^A-Za-z0-9._-]", "_", config.name)


def _shell(text: str) -> str:
    """A word of a command in a comment: quoted for the shell, on one line."""
    if text.isprintable():
        return shlex.quote(text)
    return "$'" + "".join(c if c.isprintable() and c not in "'\\" else "".join(f"\\x{b:02x}" for b in c.encode()) for c in text) + "'"
