"""simulate, replay, stress and evaluate, with policies and populations written in Python."""

import json
import os
import subprocess

import numpy as np
import pytest

import codband
from conftest import program_environment

PROGRAM = os.environ.get("TESTED_CODBAND", "codband")
SMALL = {"users": 12, "models": 3, "rounds": 80, "period": (20, 50), "arms": 5, "dim": 6, "pool": 50}


def program(*arguments):
    reply = subprocess.run([PROGRAM, *arguments, "--format", "json"], check=True, capture_output=True, text=True,
                           env=program_environment())
    return json.loads(reply.stdout)


class EpsilonGreedy(codband.CustomPolicy):
    """Fifteen lines of a researcher."""

    name = "my-egreedy"

    def __init__(self, dim, epsilon=0.1):
        self.dim, self.epsilon, self.users = dim, epsilon, {}

    def choose(self, user, arms, rng):
        if user not in self.users or rng.random() < self.epsilon:
            return rng.integers(len(arms))
        a, b = self.users[user]
        return int(np.argmax(arms @ np.linalg.solve(a, b)))

    def learn(self, user, features, reward):
        a, b = self.users.setdefault(user, (np.eye(self.dim), np.zeros(self.dim)))
        a += np.outer(features, features)
        b += reward * features


class TwoTastes(codband.Environment):
    """Users like the first or the second feature; all of them change at half time."""

    users, rounds, dim, noise = 6, 40, 2, 0.1

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)
        self.taste = np.arange(self.users) % 2

    def start_round(self, round):
        self.draws = self.rng.normal(size=(self.users, 2))
        if round == self.rounds // 2:
            self.taste = 1 - self.taste
            return range(self.users)

    def visit(self, slot):
        means = np.eye(2)[self.taste[slot]]
        return slot, np.eye(2), means, means + 0.1 * self.draws[slot]

    def model_of(self, user):
        return int(self.taste[user])


def test_own_policy_plays_beside_the_baselines_whatever_the_threads():
    policies = ["linucb", EpsilonGreedy, "random"]
    one = codband.simulate(policies, seeds=3, threads=1, **SMALL)
    many = codband.simulate(policies[::-1], seeds=3, threads=4, **SMALL)
    for name in ("linucb", "my-egreedy", "random"):
        np.testing.assert_array_equal(one[name].regret, many[name].regret)
    assert one["my-egreedy"].mean_regret < one["random"].mean_regret
    assert one.seeds == [1, 2, 3]
    assert len(one.records()) == 3 * 3 * len(one.rounds)
    assert {row["policy"] for row in one.summary()} == {"linucb", "my-egreedy", "random"}


def test_simulate_gives_what_the_program_prints():
    result = codband.simulate("codband,linucb", seeds=2, **SMALL)
    printed = program("simulate", "--users", "12", "--models", "3", "--rounds", "80", "--period", "20:50", "--arms",
                      "5", "--dim", "6", "--pool", "50", "--policies", "codband,linucb", "--seeds", "2")
    for policy, expected in zip(result.policies, printed["policies"]):
        assert policy.name == expected["name"]
        np.testing.assert_allclose(policy.total_regret, expected["regret"]["runs"], rtol=1e-12)
    assert result.environment == printed["environment"]


class Axes:
    """What plot() needs of matplotlib's: what is drawn is written down."""

    def __init__(self):
        self.drawn = {}

    def plot(self, _x, _y, *, label, color, linestyle, **_):
        self.drawn[label] = (color, linestyle)

    def __getattr__(self, _name):
        return lambda *_, **__: None


def test_own_policies_have_colours_that_no_other_has():
    own = [type(name, (EpsilonGreedy,), {"name": name}) for name in ("EpsilonGreedy", "mine", "another")]
    drawn = codband.simulate(["codband", "linucb", *own], **SMALL).plot(Axes()).drawn
    assert len({colour for colour, _ in drawn.values()}) == 5, drawn
    # Registered ones keep theirs, whatever stands beside them.
    alone = codband.simulate(["linucb"], **SMALL).plot(Axes()).drawn
    assert alone["linucb"] == drawn["linucb"]


def test_own_population_tells_changes_and_groups():
    result = codband.simulate(["codband", "random", EpsilonGreedy], TwoTastes, seeds=2)
    assert result["codband"].mean_regret < result["random"].mean_regret
    assert all(run["changes"]["true"] == 6 for run in result["random"].runs)
    again = codband.simulate([EpsilonGreedy, "codband"], TwoTastes, seeds=2, threads=1)
    np.testing.assert_array_equal(result["codband"].regret, again["codband"].regret)
    np.testing.assert_array_equal(result["my-egreedy"].regret, again["my-egreedy"].regret)
    with pytest.raises(ValueError, match="oracle-greedy"):
        codband.simulate(["oracle-greedy"], TwoTastes)


def test_errors_of_own_code_come_with_their_traceback():
    class Broken(EpsilonGreedy):
        name = "broken"

        def learn(self, user, features, reward):
            raise ZeroDivisionError("in my own line")

    for threads in (1, 4):
        with pytest.raises(ZeroDivisionError, match="in my own line") as caught:
            codband.simulate(["random", Broken], threads=threads, **SMALL)
        assert "learn" in [entry.name for entry in caught.traceback]

    class BrokenWorld(TwoTastes):
        def visit(self, slot):
            return 0, np.eye(3), [0, 0, 0], [0, 0, 0]

    with pytest.raises(ValueError, match="visit: arms"):
        codband.simulate(["random"], BrokenWorld)


@pytest.mark.parametrize("answer, reason", [
    (7, "choose returned 7 of 5 arms"), (-1, "-1 of 5"), ("a", "'a'"), (None, "None"), ((0, 0.0), "propensity 0"),
    ((0, 1, 2), "tuple of 3"), (0.5, "0.5"),
])
def test_wrong_choices_of_own_policies_are_told(answer, reason):
    class Wrong(EpsilonGreedy):
        name = "wrong"

        def choose(self, user, arms, rng):
            return answer

    with pytest.raises(ValueError, match=reason):
        codband.simulate([Wrong], **SMALL)


@pytest.mark.parametrize("arguments, reason", [
    ({"policies": []}, "none given"), ({"policies": ["nosuch"]}, "nosuch"), ({"users": 0}, "users = '0'"),
    ({"colour": 3}, "colour: is unknown, .*item_effects"), ({"seeds": 0}, "seeds"), ({"threads": 0}, "threads"),
    ({"period": "x"}, "period"), ({"policies": [3]}, "policies: 3"), ({"seed": -1}, "seed"),
])
def test_wrong_settings_name_the_field(arguments, reason):
    with pytest.raises(ValueError, match=reason):
        codband.simulate(**{**SMALL, **arguments})


def test_replay_gives_what_the_program_prints(tmp_path):
    rng = np.random.default_rng(1)
    features = rng.normal(size=(20, 3))
    rows = ["\t".join(map(str, [i, *row])) for i, row in enumerate(features)]
    (tmp_path / "features.tsv").write_text("\n".join(rows) + "\n")
    events = []
    for time in range(200):
        offered = rng.permutation(20)[:5]
        best = max(offered, key=lambda item: features[item][time % 2])
        events.append(f"{time % 2}\t{time}\t{best}," + ",".join(str(i) for i in offered if i != best))
    (tmp_path / "events.tsv").write_text("\n".join(events) + "\n")
    result = codband.replay(tmp_path, ["linucb", EpsilonGreedy, "random"], seeds=2)
    printed = program("replay", str(tmp_path), "--policies", "linucb,random", "--seeds", "2")
    by_name = {policy["name"]: policy for policy in result["policies"]}
    for policy in printed["policies"]:
        assert by_name[policy["name"]]["reward"] == policy["reward"]
    assert by_name["my-egreedy"]["reward"]["mean"] > by_name["random"]["reward"]["mean"]
    with pytest.raises((KeyError, ValueError)):
        codband.replay(tmp_path / "nothing")


def test_prepare_writes_what_the_program_writes(tmp_path):
    raw = tmp_path / "ml"
    raw.mkdir()
    movies = [f"{i},Title{i} ({1990 + i}),{'Comedy' if i % 2 else 'Drama|War'}" for i in range(1, 41)]
    (raw / "movies.csv").write_text("movieId,title,genres\n" + "\n".join(movies) + "\n")
    ratings = [f"{user},{1 + (user * 7 + i) % 40},4.0,{1000 + i}" for user in range(1, 6) for i in range(30)]
    (raw / "ratings.csv").write_text("userId,movieId,rating,timestamp\n" + "\n".join(ratings) + "\n")
    (raw / "tags.csv").write_text("userId,movieId,tag,timestamp\n1,1,funny,1000\n")
    settings = {"dim": 3, "candidates": 5, "min_observations": 1}
    meta = codband.prepare("movielens", raw, tmp_path / "one", **settings)
    subprocess.run([PROGRAM, "prepare", "movielens", "--in", raw, "--out", tmp_path / "two", "--dim", "3", "--candidates",
                    "5", "--min-observations", "1"], check=True, capture_output=True, env=program_environment())
    for name in ("features.tsv", "events.tsv", "meta.json"):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()
    assert meta == json.loads((tmp_path / "one/meta.json").read_text())
    assert codband.replay(tmp_path / "one", "linucb")["stream"]["dim"] == 3
    with pytest.raises((KeyError, ValueError)):
        codband.prepare("movielens", tmp_path, tmp_path / "three")
    with pytest.raises(ValueError, match="nosuch"):
        codband.prepare("nosuch", raw, tmp_path / "three")
    with pytest.raises(ValueError, match="^min-observations = 3000"):
        codband.prepare("movielens", raw, tmp_path / "three")
    with pytest.raises(ValueError, match="colour"):
        codband.prepare("movielens", raw, tmp_path / "three", colour=1)


def test_stress_plays_one_cell():
    result = codband.stress("linucb,random", cells=["base"], quick=True)
    assert len(result["cells"]) == 1
    with pytest.raises(ValueError, match="nosuch"):
        codband.stress("linucb,random", cells=["nosuch"], quick=True)


# Off-policy evaluation ----------------------------------------------------------------------------


def logged(n=4000, seed=1):
    """A log of an ε-greedy choice between three actions of different value."""
    rng = np.random.default_rng(seed)
    chances = np.array([0.6, 0.3, 0.1])
    values = np.array([0.2, 0.5, 0.8])
    action = rng.choice(3, size=n, p=chances)
    reward = (rng.random(n) < values[action]).astype(float)
    return action, reward, chances[action], values


def test_estimators_agree_with_their_formulas_and_with_the_truth():
    action, reward, pscore, values = logged()
    target = (action == 2) * 0.7 + (action == 1) * 0.3
    weight = target / pscore
    truth = 0.7 * values[2] + 0.3 * values[1]
    ips, snips = codband.ips(reward, pscore, target), codband.snips(reward, pscore, target)
    assert ips.value == pytest.approx(np.mean(weight * reward))
    assert snips.value == pytest.approx(np.sum(weight * reward) / np.sum(weight))
    assert ips.effective_sample_size == pytest.approx(weight.sum() ** 2 / (weight**2).sum())
    assert ips.low < truth < ips.high and snips.low < truth < snips.high
    model = np.full(3, 0.4)
    value = np.full(len(action), 0.7 * model[2] + 0.3 * model[1])
    dr = codband.dr(reward, pscore, target, model[action], value)
    assert dr.value == pytest.approx(np.mean(weight * (reward - model[action]) + value))
    assert codband.dm(value).value == pytest.approx(0.4)
    assert codband.ips(reward, pscore, target) == ips
    certain = codband.replay_match([1, 0, 1], [0.5] * 3, [1, 1, 0])
    assert certain.value == 0.5


@pytest.mark.parametrize("arguments, reason", [
    (([1], [0], [1]), "pscore"), (([1], [0.5], [2]), "target"), (([1, 2], [0.5], [1]), "lengths"),
    ((["a"], [0.5], [1]), "reward"), (([np.nan], [0.5], [1]), "nan"), (([], [], []), "reward"),
])
def test_wrong_arrays_are_refused(arguments, reason):
    with pytest.raises(ValueError, match=reason):
        codband.ips(*arguments)


def test_obp_dictionaries_go_there_and_back():
    action, reward, pscore, _ = logged(50)
    log = codband.Log.from_arrays(action, reward, pscore, np.eye(3), users=["u", "v"] * 25)
    feedback = log.to_obp()
    assert feedback["n_rounds"] == 50 and feedback["n_actions"] == 3 and feedback["context"].shape == (50, 2)
    np.testing.assert_array_equal(feedback["action"], action)
    again = codband.Log.from_obp({**feedback, "context": None}, users=["u", "v"] * 25)
    for field in ("reward", "pscore", "action"):
        np.testing.assert_array_equal(again.arrays()[field], log.arrays()[field])
    assert codband.Log.from_obp(feedback).dim == 3 * 3
    with pytest.raises(ValueError, match="pscore"):
        codband.Log.from_obp({**feedback, "pscore": None})
    with pytest.raises(ValueError, match="positions"):
        codband.Log.from_obp({**feedback, "position": np.arange(50)})


def test_evaluate_finds_the_better_policy_and_knows_own_ones():
    action, reward, pscore, values = logged(1500)
    log = codband.Log.from_arrays(action, reward, pscore, np.eye(3))
    result = codband.evaluate(log, ["logged", "uniform", EpsilonGreedy], resamples=50)
    estimates = {p["name"]: {e["estimator"]: e["value"] for e in p["estimates"]} for p in result["policies"]}
    assert estimates["logged"]["mean"] == pytest.approx(reward.mean())
    assert estimates["uniform"]["ips"] == pytest.approx(values.mean(), abs=0.08)
    assert estimates["my-egreedy"]["snips"] > estimates["logged"]["mean"] + 0.2
    with pytest.raises(ValueError, match="pscore|propensity"):
        codband.Log.from_arrays([0], [1], [0.0], np.eye(2))
    with pytest.raises(ValueError, match="action"):
        codband.Log.from_arrays([2], [1], [0.5], np.eye(2))
    with pytest.raises(ValueError, match="masked"):
        codband.Log.from_arrays([1], [1], [0.5], np.ma.masked_array(np.eye(2), mask=np.eye(2)))
    with pytest.raises(ValueError, match="masked"):
        codband.ips(np.ma.masked_array([1.0], mask=[True]), [0.5], [1.0])
    with pytest.raises(ValueError, match="real numbers"):
        codband.snips(["1"], [0.5], [1.0])


def test_csv_logs_are_read(tmp_path):
    action, reward, pscore, _ = logged(100)
    lines = ["action,reward,propensity"] + [f"{a},{r},{p}" for a, r, p in zip(action, reward, pscore)]
    (tmp_path / "log.csv").write_text("\n".join(lines) + "\n")
    log = codband.read_log(tmp_path / "log.csv")
    assert len(log) == 100 and log.arrays()["reward"].tolist() == reward.tolist()
    result = codband.evaluate(str(tmp_path / "log.csv"), "logged,uniform", resamples=50)
    printed = program("evaluate", "--log", str(tmp_path / "log.csv"), "--policies", "logged,uniform", "--resamples", "50")
    assert result["policies"] == printed["policies"]
