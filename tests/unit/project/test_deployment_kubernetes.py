"""The manifests for Kubernetes agree with the code, the image and each other. No cluster runs them here."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from incsnap.config.load import load
from incsnap.config.settings import Settings
from tests.support.deployment_files import DOCKER, DOCKERFILE, STOP_TIME, bytes_of, is_below, tried_limit

KUBERNETES = DOCKER / "kubernetes"
_ENVIRONMENT = re.compile(r"\$\{env:(\w+)\}")


def manifests() -> dict[str, dict[str, Any]]:
    """Return the manifests by kind. There is one manifest of each kind."""
    documents = [each for file in sorted(KUBERNETES.glob("*.yml")) for each in yaml.safe_load_all(file.read_text())]
    kinds = {each["kind"]: each for each in documents}
    assert len(kinds) == len(documents)
    return kinds


def pod() -> dict[str, Any]:
    spec: dict[str, Any] = manifests()["StatefulSet"]["spec"]["template"]["spec"]
    return spec


def container() -> dict[str, Any]:
    (only,) = pod()["containers"]
    return dict(only)


@pytest.fixture
def settings_in_kubernetes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Settings:
    for key, value in manifests()["Secret"]["stringData"].items():
        monkeypatch.setenv(key, value)
    ((name, text),) = manifests()["ConfigMap"]["data"].items()
    (tmp_path / name).write_text(text)
    return load(tmp_path / name)


def test_there_is_one_pod_and_it_has_time_to_stop() -> None:
    assert manifests()["StatefulSet"]["spec"]["replicas"] == 1
    assert pod()["terminationGracePeriodSeconds"] >= STOP_TIME


def test_a_pod_that_never_became_ready_is_replaced() -> None:
    assert manifests()["StatefulSet"]["spec"]["podManagementPolicy"] == "Parallel"


def test_the_port_is_that_of_the_settings(settings_in_kubernetes: Settings) -> None:
    (port,) = container()["ports"]
    (served,) = manifests()["Service"]["spec"]["ports"]

    assert port["containerPort"] == served["port"] == settings_in_kubernetes.monitoring.port
    assert served["targetPort"] == port["name"]
    assert settings_in_kubernetes.monitoring.host == "0.0.0.0"


@pytest.mark.parametrize(
    ("probe", "path"), [("startupProbe", "/health"), ("livenessProbe", "/health"), ("readinessProbe", "/ready")]
)
def test_each_probe_asks_what_it_is_for(probe: str, path: str) -> None:
    asked = container()[probe]["httpGet"]

    assert asked["path"] == path
    assert asked["port"] in {port["name"] for port in container()["ports"]}


def test_the_start_may_take_as_long_as_the_servers_are_asked(settings_in_kubernetes: Settings) -> None:
    probe = container()["startupProbe"]
    # Three questions of ten seconds (`kafka.preflight`), and MySQL is asked twice (`cli.check`).
    asked = 3 * 10 + 2 * settings_in_kubernetes.mysql.connect_timeout_seconds

    assert probe["periodSeconds"] * probe["failureThreshold"] > asked


def test_the_state_is_on_a_volume_that_is_kept(settings_in_kubernetes: Settings) -> None:
    claimed = {claim["metadata"]["name"] for claim in manifests()["StatefulSet"]["spec"]["volumeClaimTemplates"]}
    kept = [mount["mountPath"] for mount in container()["volumeMounts"] if mount["name"] in claimed]
    (cache,) = re.findall(r"^ENV INCSNAP_CACHE=(.*)$", DOCKERFILE, re.MULTILINE)

    assert is_below(settings_in_kubernetes.checkpoint_location, kept)
    assert is_below(cache, kept)


def test_every_mount_has_its_volume() -> None:
    claimed = {claim["metadata"]["name"] for claim in manifests()["StatefulSet"]["spec"]["volumeClaimTemplates"]}
    named = {volume["name"] for volume in pod()["volumes"]}

    assert {mount["name"] for mount in container()["volumeMounts"]} == claimed | named


def test_the_files_root_is_read_only_and_what_is_written_has_a_place() -> None:
    places = [mount["mountPath"] for mount in container()["volumeMounts"] if not mount.get("readOnly")]

    assert container()["securityContext"]["readOnlyRootFilesystem"] is True
    assert "/tmp" in places


def test_the_pod_is_the_images_user_without_rights() -> None:
    (user,) = re.findall(r"^USER (\d+):", DOCKERFILE, re.MULTILINE)

    assert pod()["securityContext"]["runAsUser"] == pod()["securityContext"]["fsGroup"] == int(user)
    assert pod()["securityContext"]["runAsNonRoot"] is True
    assert container()["securityContext"]["allowPrivilegeEscalation"] is False
    assert container()["securityContext"]["capabilities"] == {"drop": ["ALL"]}


def test_the_pod_has_the_memory_that_was_tried() -> None:
    resources = container()["resources"]

    assert resources["limits"]["memory"] == resources["requests"]["memory"]
    assert bytes_of(resources["limits"]["memory"]) > tried_limit()


def test_names_in_the_settings_are_in_the_secret() -> None:
    secret, config = manifests()["Secret"], manifests()["ConfigMap"]
    (text,) = config["data"].values()

    assert set(_ENVIRONMENT.findall(text)) == secret["stringData"].keys()
    assert container()["envFrom"] == [{"secretRef": {"name": secret["metadata"]["name"]}}]


def test_the_pod_runs_the_file_that_is_mounted() -> None:
    config = manifests()["ConfigMap"]
    (volume,) = [each["name"] for each in pod()["volumes"] if "configMap" in each]
    (mount,) = [each["mountPath"] for each in container()["volumeMounts"] if each["name"] == volume]
    (file,) = config["data"]

    assert container()["args"] == ["run", f"{mount}/{file}"]
    assert pod()["volumes"][0]["configMap"]["name"] == config["metadata"]["name"]


def test_the_archive_of_classes_is_prepared_where_the_job_looks_for_it() -> None:
    (prepares,) = pod()["initContainers"]

    assert prepares["command"] == ["tini", "--", "sh", "-c", "incsnap prepare || true"]
    assert all(
        prepares[name] == container()[name] for name in ("image", "volumeMounts", "securityContext", "resources")
    )


def test_selectors_match_the_pod() -> None:
    spec, service = manifests()["StatefulSet"]["spec"], manifests()["Service"]
    labels = spec["template"]["metadata"]["labels"]

    assert spec["serviceName"] == service["metadata"]["name"]
    assert spec["selector"]["matchLabels"].items() <= labels.items()
    assert service["spec"]["selector"].items() <= labels.items()


def test_the_pod_gets_no_account_of_the_cluster() -> None:
    assert pod()["automountServiceAccountToken"] is False
