"""The rendered systemd unit and Kubernetes manifest, parsed as systemd and Kubernetes parse them."""

from __future__ import annotations

import configparser
import re
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from lake.cli.app import app
from lake.cli.render import systemd_value, systemd_word
from lake.errors import ConfigError

CONFIG = {"root": "/lake", "tables": {"a": {"path": "${PLACE}/a"}}, "views": {"v": {"query": "SELECT 1 FROM a", "realtime": True}}}


def words_of(exec_start: str) -> list[str]:
    """The words of an ExecStart=, by the rules of systemd.service(5) for double quotes, escapes and specifiers."""
    assert exec_start.startswith(':"')  # a colon: no variables are substituted
    words = re.findall(r'"((?:[^"\\\n]|\\.)*)"(?: |$)', exec_start[1:])
    assert " ".join(f'"{word}"' for word in words) == exec_start[1:]
    escapes = {"\\": "\\", '"': '"'}
    assert not any(re.search("(?<!%)(?:%%)*%(?!%)", word) for word in words)
    return [re.sub(r"\\(x(..)|.)", lambda f: chr(int(f[2], 16)) if f[2] else escapes[f[1]], word).replace("%%", "%") for word in words]


@pytest.fixture
def rendered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("PLACE", "/secret")

    def invoke(kind: str, *options: str, **changes: Any) -> Any:
        (tmp_path / "lakejoin.yml").write_text(yaml.safe_dump({**CONFIG, **changes}))
        return CliRunner().invoke(app, ["--config", str(tmp_path / "lakejoin.yml"), "realtime", *options, "--render", kind])

    return invoke


def test_the_unit_runs_the_command_and_starts_it_again(rendered: Any, tmp_path: Path) -> None:
    text = rendered("systemd", "--all", "--metrics-port", "9090").stdout
    unit = configparser.ConfigParser(interpolation=None)
    unit.optionxform = str  # type: ignore[assignment,method-assign]
    unit.read_string(text)
    service = unit["Service"]
    assert words_of(service["ExecStart"])[1:] == [
        *("-m", "lake.cli", "--config", str(tmp_path / "lakejoin.yml"), "realtime", "--all", "--metrics-port", "9090")
    ]
    assert (service["Restart"], service["KillSignal"]) == ("always", "SIGTERM")
    assert "# PLACE: one a line" in text
    assert "127.0.0.1 only" in text
    assert "/secret" not in text
    if shutil.which("systemd-analyze"):
        file = tmp_path / "lakejoin.service"
        file.write_text(text.replace("EnvironmentFile=/etc", "EnvironmentFile=-/etc"))
        found = subprocess.run(["systemd-analyze", "verify", str(file)], capture_output=True, text=True)
        assert "Unknown" not in found.stderr


def test_the_manifest_runs_one_at_a_time_and_names_what_it_needs(rendered: Any) -> None:
    text = rendered("kubernetes", "v", "--metrics-port", "9090").stdout
    manifest = yaml.safe_load(text)
    assert (manifest["kind"], manifest["spec"]["replicas"], manifest["spec"]["strategy"]) == ("Deployment", 1, {"type": "Recreate"})
    assert manifest["spec"]["selector"]["matchLabels"] == manifest["spec"]["template"]["metadata"]["labels"]
    (container,) = manifest["spec"]["template"]["spec"]["containers"]
    options = ["realtime", "v", "--metrics-port", "9090", "--metrics-address", "0.0.0.0"]
    assert container["ports"] == [{"name": "metrics", "containerPort": 9090}]
    assert "# Metrics are served on all addresses of the pod" in text
    assert container["command"] == ["lakejoin", "--config", "/etc/lakejoin/lakejoin.yml", *options]
    assert container["envFrom"] == [{"secretRef": {"name": "lakejoin"}}]
    assert "--from-literal=PLACE=..." in text
    assert "/secret" not in text


def test_the_compose_file_limits_the_container_and_names_what_it_needs(rendered: Any, tmp_path: Path) -> None:
    text = rendered("compose", "v", "--metrics-port", "9090").stdout
    (container,) = yaml.safe_load(text)["services"].values()
    assert container["command"][:3] == ["lakejoin", "--config", "/etc/lakejoin/lakejoin.yml"]
    assert container["environment"]["PLACE"] is None  # as in the shell of compose
    assert (container["read_only"], container["cap_drop"], container["ports"]) == (True, ["ALL"], ["127.0.0.1:9090:9090"])
    assert container["volumes"][0]["source"] == str(tmp_path / "lakejoin.yml")
    assert "/secret" not in text


@pytest.mark.parametrize("kind", ["systemd", "kubernetes", "compose"])
def test_a_server_is_rendered_with_a_token_where_it_listens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    monkeypatch.setenv("PLACE", "/secret")
    (tmp_path / "lakejoin.yml").write_text(yaml.safe_dump({**CONFIG, "environments": {"prod": {"root": "/prod"}}}))
    options = ["--config", str(tmp_path / "lakejoin.yml"), "--env", "prod", "serve", "--render", kind]
    found = CliRunner().invoke(app, options)
    assert found.exit_code == 0, found.output
    text = found.stdout
    assert "/secret" not in text
    if kind == "systemd":
        (start,) = [line.removeprefix("ExecStart=") for line in text.splitlines() if line.startswith("ExecStart=")]
        assert words_of(start)[3:] == ["--config", str(tmp_path / "lakejoin.yml"), "--env", "prod", "serve", "--drain", "60"]
        assert "RuntimeDirectoryMode=0700" in text
        assert "LAKEJOIN_TOKEN" not in text
        return
    assert "LAKEJOIN_TOKEN" in text
    documents = list(yaml.safe_load_all(text))
    if kind == "compose":
        command = documents[0]["services"]["lakejoin-server"]["command"]
    else:
        (container,) = documents[0]["spec"]["template"]["spec"]["containers"]
        command = container["command"]
        assert documents[1]["kind"] == "Service"
        assert documents[1]["spec"]["selector"] == documents[0]["spec"]["selector"]["matchLabels"]
        assert container["readinessProbe"]["httpGet"]["path"] == "/readyz"
        assert container["readinessProbe"]["httpGet"]["httpHeaders"] == [{"name": "Host", "value": documents[1]["metadata"]["name"]}]
    assert command[-4:] == ["--listen", "0.0.0.0:8471", "--host-name", "lakejoin-server"]


def test_a_configuration_without_a_real_time_view_is_refused(rendered: Any) -> None:
    found = rendered("systemd", "--all", views={"v": {"query": "SELECT 1 FROM a"}})
    assert (found.exit_code, "No view of the configuration" in found.stderr) == (2, True)
    assert "There is no view 'w'" in rendered("kubernetes", "w").stderr


STRANGE = [
    '50% of "it"',
    "back\\slash",
    "$HOME and ${HOME}",
    "$(date) `date`",
    "a b\tc",
    "line\nExecStartPost=/bin/evil",
    "it's",
    "%h",
    "ü \u2028",
]


@pytest.mark.parametrize("text", STRANGE)
def test_words_of_a_unit_are_read_as_they_were_meant(text: str) -> None:
    word = systemd_word(text)
    assert words_of(f":{word}") == [text]
    assert "\n" not in word


@pytest.mark.parametrize("text", ["line\nExecStartPost=/bin/evil", " a", "a ", '"a', "a\\"])
def test_values_that_systemd_cannot_read_are_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="can't be a value in a systemd unit"):
        systemd_value(text)
    assert systemd_value('/lake/50% a"b') == '/lake/50%% a"b'


@pytest.mark.parametrize("kind", ["systemd", "kubernetes"])
@pytest.mark.parametrize("text", STRANGE)
def test_strange_names_of_files_and_environments_stay_what_they_are(tmp_path: Path, kind: str, text: str) -> None:
    file = tmp_path / f"{text.replace('/', '_')}.yml"
    file.write_text(yaml.safe_dump({**CONFIG, "tables": {"a": {"path": "a"}}, "environments": {text: {"root": "/other"}}}))
    found = CliRunner().invoke(app, ["--config", str(file), "--env", text, "realtime", "v", "--render", kind])
    assert found.exit_code == 0, found.stderr
    lines = found.stdout.rstrip("\n").split("\n")
    if kind == "systemd":
        (start,) = [line.removeprefix("ExecStart=") for line in lines if line.startswith("ExecStart")]
        assert words_of(start)[1:] == ["-m", "lake.cli", "--config", str(file), "--env", text, "realtime", "v"]
        return
    (container,) = yaml.safe_load(found.stdout)["spec"]["template"]["spec"]["containers"]
    assert container["command"][4].replace("$$", "$") == text  # as Kubernetes does
    assert "$" not in container["command"][4].replace("$$", "")
    assert re.fullmatch(r"/etc/lakejoin/[-._a-zA-Z0-9]+", container["command"][2])
    assert lines[0].startswith("# kubectl create configmap lakejoin --from-file=")
    assert lines[1] == "apiVersion: apps/v1"
    if "'" not in text and text.isprintable():
        assert shlex.split(lines[0][2:])[-1] == f"--from-file={container['command'][2].removeprefix('/etc/lakejoin/')}={file}"


def test_the_container_has_only_the_rights_that_it_needs(rendered: Any) -> None:
    pod = yaml.safe_load(rendered("kubernetes", "--all").stdout)["spec"]["template"]["spec"]
    assert (pod["securityContext"]["runAsNonRoot"], pod["automountServiceAccountToken"]) == (True, False)
    (container,) = pod["containers"]
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "readOnlyRootFilesystem": True,
    }
    writable = {mount["mountPath"] for mount in container["volumeMounts"] if not mount.get("readOnly")}
    assert {entry["value"] for entry in container["env"]} == writable
    assert container["resources"]["limits"].keys() == {"cpu", "memory"}
    for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
        assert "http://127.0.0.1:9090/metrics" in container[probe]["exec"]["command"][2]
    # nobody asked for metrics: they are there for the probes alone
    assert "ports" not in container
    assert container["command"][-2:] == ["--metrics-port", "9090"]
