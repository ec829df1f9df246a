from __future__ import annotations

import pytest
from defaulted_samples import defaulted, job, load, named, said_of, said_of_change, workload

from gpuworkshop.lab.api.kinds import DAEMON_SET, DEPLOYMENT, JOB, REPLICA_SET, STATEFUL_SET, Kind

WORKLOADS = [DEPLOYMENT, REPLICA_SET, DAEMON_SET, STATEFUL_SET]
ROLLING = "spec.strategy.rollingUpdate"
ROLLING_SET = "spec.updateStrategy.rollingUpdate"


@pytest.mark.parametrize("kind", WORKLOADS, ids=lambda kind: kind.kind)
def test_the_least_workload_is_fine(kind: Kind) -> None:
    assert said_of(kind, workload()) == []


@pytest.mark.parametrize("kind", WORKLOADS, ids=lambda kind: kind.kind)
def test_what_all_workloads_need(kind: Kind) -> None:
    assert said_of(kind, workload(selector=None)) == ["spec.selector: Required value"]
    (said,) = said_of(kind, workload(selector={"matchLabels": {"app": "other"}}))
    assert said == (
        'spec.template.metadata.labels: Invalid value: {"app":"x"}: `selector` does not match template '
        "`labels`"
    )
    (said,) = said_of(kind, workload(selector={}))
    assert said.startswith("spec.selector: Invalid value: {}: empty selector is invalid for ")
    (said,) = said_of(kind, workload(minReadySeconds=-1))
    assert said == "spec.minReadySeconds: Invalid value: -1: must be greater than or equal to 0"


@pytest.mark.parametrize("kind", WORKLOADS, ids=lambda kind: kind.kind)
def test_their_pods_run_always(kind: Kind) -> None:
    obj = workload()
    obj["spec"]["template"]["spec"] |= {"restartPolicy": "Never", "activeDeadlineSeconds": 5}
    assert said_of(kind, obj) == [
        'spec.template.spec.restartPolicy: Unsupported value: "Never": supported values: "Always"',
        "spec.template.spec.activeDeadlineSeconds: Forbidden: activeDeadlineSeconds in ReplicaSet is "
        "not Supported",
    ]


def test_a_workload_without_anything() -> None:
    assert said_of(DEPLOYMENT, named()) == [
        "spec.selector: Required value",
        "spec.template.spec.containers: Required value",
    ]


def test_the_template_is_checked_as_a_pod_is() -> None:
    obj = workload()
    obj["spec"]["template"]["metadata"]["annotations"] = {"a b": ""}
    obj["spec"]["template"]["spec"]["containers"][0]["image"] = ""
    said = said_of(DEPLOYMENT, obj)
    assert said[0].startswith('spec.template.metadata.annotations: Invalid value: "a b"')
    assert said[1:] == ["spec.template.spec.containers[0].image: Required value"]


@pytest.mark.parametrize(
    ("expression", "matches"),
    [
        ("{key: app, operator: In, values: [x, y]}", True),
        ("{key: app, operator: In, values: [y]}", False),
        ("{key: app, operator: NotIn, values: [y]}", True),
        ("{key: app, operator: NotIn, values: [x]}", False),
        ("{key: app, operator: Exists}", True),
        ("{key: team, operator: Exists}", False),
        ("{key: team, operator: DoesNotExist}", True),
        ("{key: app, operator: DoesNotExist}", False),
    ],
)
def test_selectors_by_expression(expression: str, matches: bool) -> None:
    said = said_of(DEPLOYMENT, workload(selector={"matchExpressions": [load(expression)]}))
    assert (said == []) is matches


def test_a_selector_that_makes_no_sense() -> None:
    selector = load("{matchLabels: {app: x}, matchExpressions: [{key: a, operator: Gt, values: ['b c']}]}")
    operator, value = said_of(DEPLOYMENT, workload(selector=selector))
    at = "spec.selector.matchExpressions[0]"
    assert operator == f'{at}.operator: Invalid value: "Gt": not a valid selector operator'
    assert value.startswith(f'{at}.values[0]: Invalid value: "b c": a valid label must be')


@pytest.mark.parametrize(
    ("kind", "spec", "expected"),
    [
        (
            DEPLOYMENT,
            "{replicas: -1}",
            "spec.replicas: Invalid value: -1: must be greater than or equal to 0",
        ),
        (
            DEPLOYMENT,
            "{strategy: {type: Fast}}",
            'spec.strategy.type: Unsupported value: "Fast": supported values: "Recreate", "RollingUpdate"',
        ),
        (
            DEPLOYMENT,
            "{strategy: {type: Recreate, rollingUpdate: {maxSurge: 1}}}",
            f"{ROLLING}: Forbidden: may not be specified when strategy `type` is 'Recreate'",
        ),
        (
            DEPLOYMENT,
            "{strategy: {rollingUpdate: {maxSurge: 0, maxUnavailable: 0%}}}",
            f'{ROLLING}.maxUnavailable: Invalid value: "0%": may not be 0 when `maxSurge` is 0',
        ),
        (
            DEPLOYMENT,
            "{strategy: {rollingUpdate: {maxUnavailable: 101%}}}",
            f'{ROLLING}.maxUnavailable: Invalid value: "101%": must not be greater than 100%',
        ),
        (
            DEPLOYMENT,
            "{strategy: {rollingUpdate: {maxSurge: half}}}",
            f'{ROLLING}.maxSurge: Invalid value: "half": a valid percent string must be a numeric string',
        ),
        (
            DEPLOYMENT,
            "{strategy: {rollingUpdate: {maxSurge: -1}}}",
            f"{ROLLING}.maxSurge: Invalid value: -1: must be",
        ),
        (
            DEPLOYMENT,
            "{minReadySeconds: 600}",
            "spec.progressDeadlineSeconds: Invalid value: 600: must be greater than minReadySeconds",
        ),
        (
            DAEMON_SET,
            "{updateStrategy: {rollingUpdate: {maxUnavailable: 0}}}",
            f"{ROLLING_SET}.maxUnavailable: Invalid value: 0: cannot be 0 when maxSurge is 0",
        ),
        (
            DAEMON_SET,
            "{updateStrategy: {rollingUpdate: {maxSurge: 1}}}",
            f"{ROLLING_SET}.maxSurge: Invalid value: 1: may not be set when maxUnavailable is non-zero",
        ),
        (
            DAEMON_SET,
            "{updateStrategy: {type: Fast}}",
            'spec.updateStrategy.type: Unsupported value: "Fast": supported values: "RollingUpdate", '
            '"OnDelete"',
        ),
        (
            STATEFUL_SET,
            "{podManagementPolicy: Random}",
            'spec.podManagementPolicy: Unsupported value: "Random": supported values: "OrderedReady", '
            '"Parallel"',
        ),
        (
            STATEFUL_SET,
            "{updateStrategy: {rollingUpdate: {partition: -1}}}",
            f"{ROLLING_SET}.partition: Invalid value: -1: must be greater than or equal to 0",
        ),
        (
            STATEFUL_SET,
            "{persistentVolumeClaimRetentionPolicy: {whenScaled: Burn}}",
            'spec.persistentVolumeClaimRetentionPolicy.whenScaled: Unsupported value: "Burn"',
        ),
        (
            STATEFUL_SET,
            "{serviceName: A}",
            'spec.serviceName: Invalid value: "A": a lowercase RFC 1123 subdomain',
        ),
    ],
)
def test_how_pods_are_replaced(kind: Kind, spec: str, expected: str) -> None:
    (said,) = said_of(kind, workload(**load(spec)))
    assert said.startswith(expected)


@pytest.mark.parametrize("kind", [DEPLOYMENT, REPLICA_SET, DAEMON_SET], ids=lambda kind: kind.kind)
def test_a_selector_stays(kind: Kind) -> None:
    changed = workload(selector={"matchLabels": {"app": "y"}})
    changed["spec"]["template"]["metadata"]["labels"] = {"app": "y"}
    (said,) = said_of_change(kind, changed, workload())
    assert said == 'spec.selector: Invalid value: {"matchLabels":{"app":"y"}}: field is immutable'
    assert said_of_change(kind, workload(minReadySeconds=3), workload()) == []


def test_of_a_stateful_set_little_changes() -> None:
    (said,) = said_of_change(STATEFUL_SET, workload(serviceName="y"), workload(serviceName="x"))
    assert said == (
        "spec: Forbidden: updates to statefulset spec for fields other than 'replicas', 'ordinals', "
        "'template', "
        "'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and "
        "'minReadySeconds' are forbidden"
    )
    assert said_of_change(STATEFUL_SET, workload(replicas=3, minReadySeconds=1), workload()) == []


def test_the_least_job_is_fine() -> None:
    assert said_of(JOB, job()) == []
    assert said_of(JOB, job(completionMode="Indexed", completions=3, parallelism=3)) == []


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ("{parallelism: -1}", "spec.parallelism: Invalid value: -1: must be greater than or equal to 0"),
        ("{backoffLimit: -1}", "spec.backoffLimit: Invalid value: -1: must be greater than or equal to 0"),
        (
            "{completionMode: All}",
            'spec.completionMode: Unsupported value: "All": supported values: "Indexed", "NonI',
        ),
        (
            "{completionMode: Indexed, parallelism: 2}",
            "spec.completions: Required value: when completion mode is Indexed",
        ),
        ("{podReplacementPolicy: X}", 'spec.podReplacementPolicy: Unsupported value: "X"'),
        ("{manualSelector: true}", "spec.selector: Required value"),
        (
            "{selector: {matchLabels: {job-name: x}}}",
            'spec.selector: Invalid value: {"matchLabels":{"job-name":"x",',
        ),
    ],
)
def test_jobs(spec: str, expected: str) -> None:
    (said,) = said_of(JOB, job(**load(spec)))
    assert said.startswith(expected)


RULES = "podFailurePolicy: {rules: [%s]}"


@pytest.mark.parametrize(
    "spec",
    [
        RULES % "{action: FailJob, onExitCodes: {operator: In, values: [1, 42], containerName: c}}",
        RULES % "{action: Ignore, onPodConditions: [{type: DisruptionTarget}]}",
        RULES % "{action: Count, onExitCodes: {operator: NotIn, values: [0, 1]}}",
        "completionMode: Indexed, completions: 2, backoffLimitPerIndex: 0, maxFailedIndexes: 2, "
        + RULES % "{action: FailIndex, onExitCodes: {operator: In, values: [1]}}",
    ],
)
def test_rules_for_failures_that_are_fine(spec: str) -> None:
    assert said_of(JOB, job(**load(f"{{{spec}}}"))) == []


RULE = "spec.podFailurePolicy.rules[0]"
CODES = f"{RULE}.onExitCodes"


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        (RULES % "{action: Ignore}", f'{RULE}: Invalid value: "": specifying one of OnExitCodes and'),
        (
            RULES
            % "{action: Ignore, onExitCodes: {operator: In, values: [1]}, onPodConditions: [{type: A}]}",
            f'{RULE}: Invalid value: "": specifying both',
        ),
        (
            RULES % "{action: Shrug, onPodConditions: [{type: A}]}",
            f'{RULE}.action: Unsupported value: "Shrug": supported values: "Count", "FailIndex"',
        ),
        (
            RULES % "{action: FailIndex, onPodConditions: [{type: A}]}",
            f'{RULE}.action: Invalid value: "FailIndex": requires the backoffLimitPerIndex to be set',
        ),
        (
            RULES % "{action: Ignore, onPodConditions: [{type: A, status: Maybe}]}",
            f'{RULE}.onPodConditions[0].status: Unsupported value: "Maybe"',
        ),
        (
            RULES % "{action: Count, onExitCodes: {operator: Like, values: [1]}}",
            f'{CODES}.operator: Unsupported value: "Like": supported values: "In", "NotIn"',
        ),
        (
            RULES % "{action: Count, onExitCodes: {operator: In, values: [1], containerName: x}}",
            f'{CODES}.containerName: Invalid value: "x": must be one of the container or initContainer names',
        ),
        (
            RULES % "{action: Count, onExitCodes: {operator: In, values: []}}",
            f"{CODES}.values: Invalid value: []: at least one value is required",
        ),
        (
            RULES % "{action: Count, onExitCodes: {operator: In, values: [0]}}",
            f"{CODES}.values[0]: Invalid value: 0: must not be 0 for the In operator",
        ),
        (
            RULES % "{action: Count, onExitCodes: {operator: In, values: [2, 1]}}",
            f"{CODES}.values: Invalid value: [2,1]: must be ordered",
        ),
        (
            RULES % "{action: Count, onExitCodes: {operator: In, values: [1, 1]}}",
            f"{CODES}.values[1]: Duplicate value: 1",
        ),
        (
            RULES % ", ".join(["{action: Count, onPodConditions: [{type: A}]}"] * 21),
            "spec.podFailurePolicy.rules: Too many: 21: must have at most 20 items",
        ),
        (
            "podReplacementPolicy: TerminatingOrFailed, "
            + RULES % "{action: Count, onPodConditions: [{type: A}]}",
            'spec.podReplacementPolicy: Unsupported value: "TerminatingOrFailed": supported values: "Failed"',
        ),
        (
            "backoffLimitPerIndex: 1",
            "spec.backoffLimitPerIndex: Invalid value: 1: requires indexed completion",
        ),
        (
            "completionMode: Indexed, completions: 2, maxFailedIndexes: 1",
            "spec.backoffLimitPerIndex: Required value: when maxFailedIndexes is specified",
        ),
        (
            "completionMode: Indexed, completions: 2, backoffLimitPerIndex: 1, maxFailedIndexes: 3",
            "spec.maxFailedIndexes: Invalid value: 3: must be less than or equal to completions",
        ),
        ("successPolicy: {rules: [{succeededCount: 1}]}", "spec.successPolicy: Forbidden: the lab's Jobs"),
    ],
)
def test_rules_for_failures_that_make_no_sense(spec: str, expected: str) -> None:
    (said,) = said_of(JOB, job(**load(f"{{{spec}}}")))
    assert said.startswith(expected)


def test_rules_for_failures_need_pods_that_end() -> None:
    obj = job(**load("{%s}" % (RULES % "{action: Count, onPodConditions: [{type: A}]}")))
    obj["spec"]["template"]["spec"]["restartPolicy"] = "OnFailure"
    (said,) = said_of(JOB, obj)
    words = 'Invalid value: "OnFailure": only "Never" is supported when podFailurePolicy is specified'
    assert said == f"spec.template.spec.restartPolicy: {words}"


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        (None, "Required value: valid values: "),
        ("Always", "Required value: valid values: "),
        ("X", "Unsupported value: "),
    ],
)
def test_a_job_is_to_end(policy: str | None, expected: str) -> None:
    obj = job()
    obj["spec"]["template"]["spec"]["restartPolicy"] = policy
    (said,) = said_of(JOB, obj)
    assert said.startswith(f"spec.template.spec.restartPolicy: {expected}")


def test_a_job_that_selects_by_hand_has_to_select_its_pods() -> None:
    obj = job(manualSelector=True, selector={"matchLabels": {"app": "x"}})
    (said,) = said_of(JOB, obj)
    assert said.endswith("`selector` does not match template `labels`")
    obj["spec"]["template"]["metadata"] = {"labels": {"app": "x"}}
    assert said_of(JOB, obj) == []


def test_what_a_job_does_stays() -> None:
    changed = job(completions=1, parallelism=5, backoffLimit=1)
    assert said_of_change(JOB, changed, job()) == []
    changed["spec"]["template"]["spec"]["containers"][0]["image"] = "busybox:2"
    (said,) = said_of_change(JOB, changed, job())
    assert said.startswith('spec.template: Invalid value: {"spec":{')
    assert said.endswith(": field is immutable")
    (said,) = said_of_change(JOB, job(completions=2), job(completions=3))
    assert said == "spec.completions: Invalid value: 2: field is immutable"


def test_where_a_suspended_job_runs_may_change() -> None:
    suspended = job(suspend=True)
    changed = job()
    changed["spec"]["template"]["spec"]["nodeSelector"] = {"team": "vision"}
    assert said_of_change(JOB, changed, suspended) == []
    assert len(said_of_change(JOB, changed, job())) == 1
    changed["spec"]["template"]["spec"]["containers"][0]["image"] = "busybox:2"
    assert len(said_of_change(JOB, changed, suspended)) == 1


def test_an_indexed_job_grows_with_its_parallelism() -> None:
    def indexed(number: int, at_once: int) -> dict[str, object]:
        return job(completionMode="Indexed", completions=number, parallelism=at_once)

    assert said_of_change(JOB, indexed(4, 4), indexed(3, 3)) == []
    (said,) = said_of_change(JOB, indexed(4, 3), indexed(3, 3))
    assert said.endswith("can only be modified in tandem with parallelism")


def test_defaults_are_not_a_change() -> None:
    for kind in WORKLOADS:
        stored = defaulted(kind, workload())
        assert said_of_change(kind, workload(), stored) == []
