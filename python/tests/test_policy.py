"""codband.Policy: choosing, learning, state, arrays of every kind, misuse, threads."""

import copy
import itertools
import pickle
import threading

import numpy as np
import pytest

import codband

SPECS = ["codband", "codband:paper", "linucb", "lints", "club", "random"]


def offers(seed, visits, arms=5, dim=4):
    values = np.random.default_rng(seed).normal(size=(visits, arms, dim))
    return values / np.linalg.norm(values, axis=-1, keepdims=True)


def play(policy, arms, theta, first=0):
    """Visits one after the other; the choices."""
    chosen = []
    for i, visit in enumerate(arms):
        decision = policy.choose((first + i) % 3, visit)
        policy.learn(decision, float(visit[decision.arm] @ theta))
        chosen.append(decision.arm)
    return chosen


@pytest.mark.parametrize("spec", SPECS)
def test_same_seed_gives_the_same_run_and_another_seed_another(spec):
    arms, theta = offers(1, 60), np.array([1.0, -1, 0.5, 0])
    first = play(codband.Policy(spec, dim=4, seed=3), arms, theta)
    assert play(codband.Policy(spec, dim=4, seed=3), arms, theta) == first
    if spec in ("lints", "random"):
        assert play(codband.Policy(spec, dim=4, seed=4), arms, theta) != first


@pytest.mark.parametrize("spec", SPECS)
@pytest.mark.parametrize("how", ["file", "pickle", "copy"])
def test_restored_policy_continues_as_if_it_had_not_stopped(spec, how, tmp_path):
    arms, theta = offers(2, 80), np.array([1.0, -1, 0.5, 0])
    policy = codband.Policy(spec, dim=4)
    play(policy, arms[:40], theta)
    if how == "file":
        policy.save(tmp_path / "state")
        again = codband.Policy.load(tmp_path / "state")
        assert [entry.name for entry in tmp_path.iterdir()] == ["state"]
    else:
        again = pickle.loads(pickle.dumps(policy)) if how == "pickle" else copy.deepcopy(policy)
    assert play(again, arms[40:], theta, 40) == play(policy, arms[40:], theta, 40)
    assert again.to_bytes() == policy.to_bytes()


def test_damaged_state_is_refused():
    policy = codband.Policy("codband", dim=2)
    play(policy, offers(1, 10, dim=2), np.ones(2))
    state = bytearray(policy.to_bytes())
    for cut in (0, 5, 20, 30, len(state) - 1):
        with pytest.raises((ValueError, codband.Error)):
            codband.Policy.from_bytes(bytes(state[:cut]))
    state[-20] ^= 1
    with pytest.raises(codband.DataError):
        codband.Policy.from_bytes(bytes(state))


def test_decisions_survive_pickle_and_dictionaries_and_learn_the_same():
    arms = offers(3, 1)[0]
    one, two = codband.Policy("codband", dim=4), codband.Policy("codband", dim=4)
    decision = one.choose("ann", arms)
    two.choose("ann", arms)
    stored = codband.Decision.from_dict(pickle.loads(pickle.dumps(decision)).to_dict())
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        assert pickle.loads(pickle.dumps(decision, protocol)).to_dict() == decision.to_dict()
    one.learn(decision, 1.0)
    two.learn(stored, 1.0)
    assert one.to_bytes() == two.to_bytes()
    assert decision.features.tolist() == arms[decision.arm].tolist()
    with pytest.raises(TypeError, match="pickle"):
        pickle.dumps(one.learn(one.choose("ann", arms), 1.0), 0)
    broken = decision.to_dict()
    del broken["period"]
    with pytest.raises(ValueError, match="period: is missing"):
        codband.Decision.from_dict(broken)


def test_rank_orders_by_score_with_the_choice_first_and_tells_probabilities():
    policy = codband.Policy("codband", dim=4)
    arms = offers(4, 1, arms=6)[0]
    ranking = policy.rank("ann", arms, floor=0.1)
    order = ranking.order
    assert sorted(order) == list(range(6)) and order[0] == ranking.arm
    assert all(a >= b for a, b in itertools.pairwise(ranking.score[order[1:]]))
    assert ranking.probability.sum() == pytest.approx(1)
    assert (ranking.probability >= 0.1 / 6 - 1e-12).all()
    assert ranking.decision.propensity == ranking.probability[ranking.arm]


def test_mean_is_features_times_theta_plus_intercept():
    policy = codband.Policy("codband", dim=4)
    play(policy, offers(5, 100), np.array([1.0, -1, 0.5, 0]))
    arms = offers(6, 1)[0]
    ranking = policy.rank(0, arms)
    np.testing.assert_allclose(ranking.mean, arms @ ranking.theta + ranking.intercept, atol=1e-9)


def test_forgetting_removes_a_user():
    policy = codband.Policy("linucb", dim=4)
    empty = policy._encode()
    arms = offers(7, 1)[0]
    policy.learn(policy.choose("ann", arms), 1.0)
    assert policy.forget("ann") and not policy.forget("ann")
    assert policy._encode() == empty


def test_describe_tells_models_and_users():
    policy = codband.Policy("codband", dim=4)
    play(policy, offers(8, 90), np.array([1.0, -1, 0.5, 0]))
    description = policy.describe()
    assert description["name"] == "codband" and description["model_count"] == len(description["models"]) > 0
    assert policy.user(0)["observations"] == 30
    assert policy.user("nobody") is None


# Batches ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("spec", SPECS)
def test_batch_equals_single_calls(spec):
    arms = offers(9, 50)
    users = np.arange(50) % 7
    one, many = codband.Policy(spec, dim=4), codband.Policy(spec, dim=4)
    singles = [one.choose(int(user), visit) for user, visit in zip(users, arms)]
    batch = many.choose_batch(users, arms)
    assert batch.arm.tolist() == [d.arm for d in singles]
    assert batch.mean.tolist() == [d.mean for d in singles]
    rewards = np.linspace(-1, 1, 50)
    changed = [bool(one.learn(d, r)) for d, r in zip(singles, rewards)]
    assert many.learn_batch(batch, rewards).tolist() == changed
    assert one.to_bytes() == many.to_bytes()
    assert many.learn_batch([batch[0], batch[-1]], [1, 1]).shape == (2,)


def test_batch_with_one_wrong_reward_learns_nothing():
    policy = codband.Policy("linucb", dim=4)
    batch = policy.choose_batch([1, 2, 3], offers(1, 1)[0])
    before = policy.to_bytes()
    for wrong in ([1, 2], [1, np.nan, 1], [1, 2, 1e16], ["a", "b", "c"], [[1, 2, 3]], None):
        with pytest.raises(ValueError):
            policy.learn_batch(batch, wrong)
    with pytest.raises(ValueError, match=r"decisions\[0\]"):
        policy.learn_batch([7], [1.0])
    foreign = codband.Policy("linucb", dim=3).choose_batch([1, 2, 3], np.ones((2, 3)))
    with pytest.raises(ValueError, match="features"):
        policy.learn_batch(foreign, [1, 1, 1])
    assert policy.to_bytes() == before


# Arrays -------------------------------------------------------------------------------------------

BASE = np.array([[1, 0, 2, 1], [0, 3, 1, 0], [2, 1, 0, 1]])


@pytest.mark.parametrize("arms", [
    BASE.astype(np.float64), BASE.astype(np.float32), BASE.astype(np.float16), BASE.astype(np.longdouble),
    BASE.astype(np.int8), BASE.astype(np.uint64), BASE.astype(">f8"), BASE.astype(">i2"),
    np.asfortranarray(BASE, dtype=float), np.repeat(BASE, 2, axis=0)[::2].astype(float),
    np.repeat(BASE.astype(float), 2, axis=1)[:, ::2], BASE[::-1].astype(float)[::-1],
    BASE.tolist(), tuple(map(tuple, BASE.tolist())),
    np.frombuffer(b"x" + BASE.astype(float).tobytes(), np.uint8)[1:].view(float).reshape(3, 4),
    np.broadcast_to(BASE.astype(float), (1, 3, 4))[0],
], ids=lambda a: f"{getattr(a, 'dtype', type(a).__name__)}-{getattr(a, 'strides', '')}")
def test_every_layout_gives_the_same_choice(arms):
    expected = codband.Policy("codband", dim=4).choose(1, BASE.astype(float))
    decision = codband.Policy("codband", dim=4).choose(1, arms)
    assert decision.to_dict() == expected.to_dict()


def test_boolean_features_are_numbers():
    arms = BASE > 0
    assert codband.Policy("linucb", dim=4).choose(1, arms).features.tolist() == arms[0].astype(float).tolist()


WRONG_ARMS = [
    (np.ones(4), r"arms: has the shape \(4,\), expected \(arms, 4\)"),
    (np.ones((2, 2, 4)), "shape"), (np.ones((3, 5)), "features"), (np.ones((0, 4)), "none given"),
    (np.full((2, 4), np.nan), "nan"), (np.full((2, 4), np.inf), "inf"), (np.full((2, 4), 1e16), "1e"),
    (np.ones((2, 4), dtype=object), "holds object"), (np.ones((2, 4), dtype=complex), "holds complex128"),
    (np.array([["a"] * 4]), "holds str"), (np.zeros((2, 4), dtype="M8[s]"), "holds datetime64"),
    ([[10**400, 0, 0, 0]], "holds object"), ([[1, 2, 3, 4], [1, 2]], "arms"), (None, "arms"), ("text", "arms"),
    (7, "shape"), (np.ma.masked_array(np.ones((2, 4)), mask=True), "masked"), (object(), "arms"),
    (np.zeros((2, 4), dtype=[("a", float)]), "holds void"), ({}, "arms"),
]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("arms, reason", WRONG_ARMS, ids=range(len(WRONG_ARMS)))
def test_wrong_arms_are_refused_and_change_nothing(arms, reason):
    policy = codband.Policy("codband", dim=4)
    play(policy, offers(1, 5), np.ones(4))
    before = policy.to_bytes()
    for call in (policy.choose, policy.rank, lambda user, a: policy.choose_batch([user], a)):
        if reason == "shape" and call not in (policy.choose, policy.rank):
            continue
        with pytest.raises(ValueError, match=reason if call == policy.choose else ""):
            call(1, arms)
    assert policy.to_bytes() == before


@pytest.mark.parametrize("user, reason", [
    (-1, "user: is -1"), (2**64, "user"), (1.5, "of type float"), ([1], "list"), ("\ud800", "Unicode"),
    (None, "NoneType, expected a text, or a whole number"),
])
def test_wrong_users_are_refused(user, reason):
    policy = codband.Policy("linucb", dim=4)
    with pytest.raises(ValueError, match=reason):
        policy.choose(user, BASE)
    with pytest.raises(ValueError):
        policy.forget(user)


def test_users_are_any_whole_number_or_text():
    policy = codband.Policy("linucb", dim=4)
    for user in (0, 2**64 - 1, np.int32(5), np.uint64(7), True, "ann", ""):
        policy.learn(policy.choose(user, BASE), 1.0)
    assert policy.choose("ann", BASE).user == policy.choose("ann", BASE).user != policy.choose("bob", BASE).user


@pytest.mark.parametrize("spec, options, reason", [
    ("nosuch", {"dim": 2}, "nosuch"), ("linucb:alpha=x", {"dim": 2}, "alpha"),
    ("linucb", {"dim": 0}, "dim"), ("linucb", {"dim": 5000}, "dim"), ("linucb", {"dim": -1}, "dim"),
    ("linucb", {"dim": 2.5}, "dim"), ("linucb", {"dim": 2, "seed": -1}, "seed"), ("oracle-greedy", {"dim": 2}, "truth|true"),
])
def test_wrong_constructions_name_the_field(spec, options, reason):
    with pytest.raises(ValueError, match=reason):
        codband.Policy(spec, **options)


def test_wrong_rewards_and_floors_are_refused():
    policy = codband.Policy("linucb", dim=4)
    decision = policy.choose(1, BASE)
    before = policy.to_bytes()
    for reward in (np.nan, np.inf, 1e16):
        with pytest.raises(ValueError, match="reward"):
            policy.learn(decision, reward)
    with pytest.raises(ValueError, match="reward: is of type str"):
        policy.learn(decision, "1")
    with pytest.raises(ValueError, match="reward: is too large"):
        policy.learn(decision, 10**400)
    for floor in (-0.1, 1.1, np.nan):
        with pytest.raises(ValueError, match="floor"):
            policy.rank(1, BASE, floor=floor)
    other = codband.Policy("linucb", dim=5).choose(1, np.ones((1, 5)))
    with pytest.raises(ValueError, match="5 features, expected"):
        policy.learn(other, 1.0)
    assert policy.to_bytes() == before


# Named arms ---------------------------------------------------------------------------------------


def test_facade_with_contexts_learns_an_interaction():
    # Rock on workdays, jazz on Sundays: only the interaction tells.
    policy = codband.Policy("linucb", dim=2 * 3)
    policy.warm_start({"jazz": [1, 0], "rock": [0, 1]})
    days = np.array([[1.0, 0.0], [0.0, 1.0]] * 50)
    shown = ["jazz", "jazz", "rock", "rock"] * 25
    rewards = [float((arm == "jazz") == (day[1] == 1)) for arm, day in zip(shown, days)]
    policy.partial_fit(shown, rewards, days)
    assert policy.predict([[1, 0], [0, 1]]) == ["rock", "jazz"]
    expectations = policy.predict_expectations([[1, 0]])[0]
    assert expectations["rock"] > 0.8 > 0.2 > expectations["jazz"]
    policy.add_arm("blues", [0.9, 0.1])
    assert [arm for arm, _ in policy.recommend(3, [[0, 1]])[0]] == ["jazz", "blues", "rock"]
    assert [arm for arm, _ in policy.recommend(3, [[0, 1]], excluded=["jazz"])[0]] == ["blues", "rock"]
    again = codband.Policy.from_bytes(policy.to_bytes())
    assert again.arms == ["jazz", "rock", "blues"]
    assert again.predict([[1, 0]]) == policy.predict([[1, 0]])


def test_facade_refuses_and_learns_nothing():
    policy = codband.Policy("linucb", dim=2)
    with pytest.raises(ValueError, match="arms: none"):
        policy.predict()
    policy.add_arm("a", [1, 0])
    before = policy.to_bytes()
    for call in (lambda: policy.add_arm("a", [1, 0]), lambda: policy.add_arm("b", [1, 2, 3]),
                 lambda: policy.add_arm("b", [np.nan, 0]), lambda: policy.add_arm("b", [1]),
                 lambda: policy.remove_arm("b"), lambda: policy.partial_fit(["a", "b"], [1, 1]),
                 lambda: policy.partial_fit(["a"], [1, 2]), lambda: policy.partial_fit(["a", "a"], [1, np.nan]),
                 lambda: policy.partial_fit(["a"], [1], [[1]]), lambda: policy.partial_fit(["a"], ["x"]),
                 lambda: policy.recommend(0), lambda: policy.partial_fit(["a"], [1], users=[-1]),
                 lambda: policy.add_arm("b", ["1", "2"]), lambda: policy.add_arm("b", np.array([1 + 1j, 2])),
                 lambda: policy.add_arm("b", np.array([1, 2], dtype=object)), lambda: policy.add_arm("b", [10**400, 1]),
                 lambda: policy.add_arm("b", np.ma.masked_array([1.0, 2.0], mask=[True, False])),
                 lambda: policy.partial_fit(["a"], np.ma.masked_array([1.0], mask=[True])),
                 lambda: policy.predict([["x"]])):
        with pytest.raises(ValueError):
            call()
    assert policy.to_bytes() == before


# Threads ------------------------------------------------------------------------------------------


def test_threads_may_share_a_policy():
    policy = codband.Policy("codband", dim=4)
    arms = offers(10, 200)
    failures = []

    def work(user):
        try:
            for i, visit in enumerate(arms):
                policy.learn(policy.choose(user, visit), float(i % 2))
                if i % 50 == 0:
                    policy.rank(user, visit)
                    codband.Policy.from_bytes(policy.to_bytes())
        except Exception as error:  # pylint: disable=broad-except
            failures.append(error)

    threads = [threading.Thread(target=work, args=(user,)) for user in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert policy.next_event == 4 * (200 + 4)
    assert sum(policy.user(user)["observations"] for user in range(4)) <= 800
    assert policy.forget(0) and policy.forget(3)


def test_choices_do_not_depend_on_other_threads():
    policy = codband.Policy("lints", dim=4)
    arms = offers(11, 400)
    expected = [policy.choose(1, visit, event=i).arm for i, visit in enumerate(arms)]
    seen = {}

    def work(part):
        for i in range(part, 400, 4):
            seen[i] = policy.choose(1, arms[i], event=i).arm

    threads = [threading.Thread(target=work, args=(part,)) for part in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [seen[i] for i in range(400)] == expected
