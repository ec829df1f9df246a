from __future__ import annotations

import pytest
from defaulted_samples import UID, defaulted, job, named, workload

from gpuworkshop.lab.api.kinds import DAEMON_SET, DEPLOYMENT, JOB, REPLICA_SET, STATEFUL_SET, Kind
from gpuworkshop.lab.api.objects import Object

QUARTER = {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "25%", "maxSurge": "25%"}}


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (
            DEPLOYMENT,
            {"replicas": 1, "revisionHistoryLimit": 10, "progressDeadlineSeconds": 600, "strategy": QUARTER},
        ),
        (REPLICA_SET, {"replicas": 1}),
        (
            DAEMON_SET,
            {
                "revisionHistoryLimit": 10,
                "updateStrategy": {
                    "type": "RollingUpdate",
                    "rollingUpdate": {"maxUnavailable": 1, "maxSurge": 0},
                },
            },
        ),
        (
            STATEFUL_SET,
            {
                "replicas": 1,
                "revisionHistoryLimit": 10,
                "podManagementPolicy": "OrderedReady",
                "persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Retain", "whenScaled": "Retain"},
                "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}},
            },
        ),
    ],
)
def test_each_kind(kind: Kind, expected: Object) -> None:
    spec = defaulted(kind, workload())["spec"]
    assert {key: value for key, value in spec.items() if key not in ("selector", "template")} == expected
    assert spec["selector"] == {"matchLabels": {"app": "x"}}
    assert spec["template"]["spec"]["restartPolicy"] == "Always"
    assert "enableServiceLinks" not in spec["template"]["spec"]  # only pods show it


def test_what_is_set_stays() -> None:
    spec = defaulted(DEPLOYMENT, workload(replicas=0, revisionHistoryLimit=0, strategy={"type": "Recreate"}))[
        "spec"
    ]
    assert (spec["replicas"], spec["revisionHistoryLimit"]) == (0, 0)
    assert spec["strategy"] == {"type": "Recreate"}
    rolling = {"rollingUpdate": {"maxSurge": 0}}
    given = defaulted(DEPLOYMENT, workload(strategy=rolling))["spec"]["strategy"]
    assert given == {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": "25%"}}
    on_delete = {"type": "OnDelete"}
    assert defaulted(DAEMON_SET, workload(updateStrategy=on_delete))["spec"]["updateStrategy"] == on_delete
    assert defaulted(STATEFUL_SET, workload(updateStrategy=on_delete))["spec"]["updateStrategy"] == on_delete


def test_a_template_keeps_its_requests_as_they_are() -> None:
    obj = workload()
    obj["spec"]["template"]["spec"]["containers"][0]["resources"] = {"limits": {"nvidia.com/gpu": 1}}
    container = defaulted(DEPLOYMENT, obj)["spec"]["template"]["spec"]["containers"][0]
    assert container["resources"] == {"limits": {"nvidia.com/gpu": "1"}}


def test_claim_templates() -> None:
    claim = {"metadata": {"name": "data"}, "spec": {"resources": {"requests": {"storage": "1024Mi"}}}}
    (found,) = defaulted(STATEFUL_SET, workload(volumeClaimTemplates=[claim]))["spec"]["volumeClaimTemplates"]
    assert found == {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "data"},
        "spec": {"resources": {"requests": {"storage": "1Gi"}}, "volumeMode": "Filesystem"},
        "status": {"phase": "Pending"},
    }


def test_a_workload_without_a_spec_is_left_to_validation() -> None:
    spec = defaulted(DEPLOYMENT, named())["spec"]
    assert spec["template"]["spec"]["containers"] == []
    assert "selector" not in spec


def test_a_job_selects_its_pods_by_its_uid() -> None:
    found = defaulted(JOB, job())
    labels = {
        "controller-uid": UID,
        "job-name": "x",
        "batch.kubernetes.io/controller-uid": UID,
        "batch.kubernetes.io/job-name": "x",
    }
    spec = found["spec"]
    assert spec.pop("template")["metadata"]["labels"] == labels
    assert found["metadata"]["labels"] == labels
    assert spec == {
        "backoffLimit": 6,
        "completionMode": "NonIndexed",
        "completions": 1,
        "manualSelector": False,
        "parallelism": 1,
        "podReplacementPolicy": "TerminatingOrFailed",
        "selector": {"matchLabels": {"batch.kubernetes.io/controller-uid": UID}},
        "suspend": False,
    }


def test_a_job_that_selects_by_hand() -> None:
    selector = {"matchLabels": {"app": "x"}}
    spec = defaulted(JOB, job(manualSelector=True, selector=selector))["spec"]
    assert spec["selector"] == selector
    assert "labels" not in spec["template"]["metadata"]


def test_jobs_of_other_sorts() -> None:
    assert "completions" not in defaulted(JOB, job(parallelism=3))["spec"]  # a queue of work
    assert defaulted(JOB, job(completions=3))["spec"]["parallelism"] == 1
    assert defaulted(JOB, job(backoffLimitPerIndex=1))["spec"]["backoffLimit"] == 2**31 - 1
    policy = {"rules": [{"action": "FailJob"}]}
    assert defaulted(JOB, job(podFailurePolicy=policy))["spec"]["podReplacementPolicy"] == "Failed"


def test_a_jobs_own_labels_stay() -> None:
    obj = job()
    obj["metadata"]["labels"] = {"team": "vision"}
    assert defaulted(JOB, obj)["metadata"]["labels"] == {"team": "vision"}
