"""What keeps real-time paths running where no scheduler does: a systemd unit or a Kubernetes deployment, as text to look over and apply.

Both start `lakejoin realtime` again when it ends, and end it by SIGTERM, after the batch under way.
"""

from __future__ import annotations

import getpass
import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from lake.cli.arguments import Kind
from lake.config.loader import load, variables

_ENDS_WITHIN = 120
_IMAGE = "REGISTRY/lakejoin:TAG"


def render(kind: Kind, config: Path, env: str | None, view: str | None, metrics_port: int | None) -> str:
    """For one view, or (None) for all that run in real time. Raises ConfigError where the configuration is not valid, or has none such."""
    loaded = load(config, env)
    loaded.in_realtime(view)
    options = ["--env", env] if env is not None else []
    metrics = ["--metrics-port", str(metrics_port)] if metrics_port is not None else []
    metrics += ["--metrics-address", "0.0.0.0"] if metrics and kind is Kind.kubernetes else []
    command = [*options, "realtime", view if view is not None else "--all", *metrics]
    make = _unit if kind is Kind.systemd else _deployment
    return make(config, command, sorted(variables(config, env)))


def _unit(config: Path, command: Sequence[str], needed: Sequence[str]) -> str:
    run = shlex.join([sys.executable, "-m", "lake.cli", "--config", str(config.resolve()), *command])
    secrets = [f"# {', '.join(needed)}, a line each", "EnvironmentFile=/etc/lakejoin/environment"] if needed else []
    return "\n".join(
        [
            "[Unit]",
            f"Description=Lakejoin real-time paths of {config.resolve()}",
            "After=network-online.target",
            "Wants=network-online.target",
            "StartLimitIntervalSec=0",
            "",
            "[Service]",
            f"User={getpass.getuser()}",
            f"WorkingDirectory={config.resolve().parent}",
            *secrets,
            f"ExecStart={run.replace('%', '%%')}",
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


def _deployment(config: Path, command: Sequence[str], needed: Sequence[str]) -> str:
    labels = {"app.kubernetes.io/name": "lakejoin", "app.kubernetes.io/component": "realtime"}
    container: dict[str, Any] = {
        "name": "realtime",
        "image": _IMAGE,  # with Python, Java and the lakejoin package
        "command": ["lakejoin", "--config", f"/etc/lakejoin/{config.name}", *command],
        "resources": {"requests": {"cpu": "2", "memory": "6Gi"}, "limits": {"memory": "6Gi"}},
        "volumeMounts": [{"name": "config", "mountPath": "/etc/lakejoin", "readOnly": True}],
    }
    if needed:
        container["envFrom"] = [{"secretRef": {"name": "lakejoin"}}]
    spec = {
        "replicas": 1,
        "strategy": {"type": "Recreate"},  # the lease lets one at a time run a view
        "selector": {"matchLabels": dict(labels)},
        "template": {
            "metadata": {"labels": dict(labels)},
            "spec": {
                "terminationGracePeriodSeconds": _ENDS_WITHIN,
                "containers": [container],
                "volumes": [{"name": "config", "configMap": {"name": "lakejoin"}}],
            },
        },
    }
    manifest: Mapping[str, Any] = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "lakejoin-realtime", "labels": dict(labels)},
        "spec": spec,
    }
    files = f"# kubectl create configmap lakejoin --from-file={config}"
    secret = f"\n# kubectl create secret generic lakejoin{''.join(f' --from-literal={v}=...' for v in needed)}" if needed else ""
    return f"{files}{secret}\n{yaml.safe_dump(manifest, sort_keys=False)}".rstrip()
