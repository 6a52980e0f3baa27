"""Calls in a random order, with good and bad arguments: nothing crashes, what is refused is refused with
ValueError (or KeyError: there is no such thing, or DataError: no saved state) and has changed nothing. Every seed is a test of its own.
Also run under AddressSanitizer: scripts/python_asan.sh."""

import random
import warnings

import numpy as np
import pytest

import codband

SEEDS = [*range(10), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(10, 60))]
SPECS = ["codband", "codband:paper", "linucb", "lints", "club", "sclub", "dlinucb", "random"]
DIM = 4
REFUSED = (ValueError, KeyError, codband.DataError)


class Evil:
    """What no call expects."""

    def __array__(self, *_, **__):
        raise ValueError("no array")

    def __index__(self):
        raise ValueError("no number")

    def __len__(self):
        return 3

    def __getitem__(self, index):
        if index != 0:
            raise IndexError
        return self

    def __float__(self):
        raise ValueError("no number")


BAD = [None, "text", b"bytes", -1, 2**64, 10**400, 1.5, float("nan"), float("inf"), 1e300, object(), Evil(), [], {}, (),
       [[]], [[1, 2, 3, 4], [1, 2]], [[10**400] * DIM], np.ones(DIM), np.ones((3, DIM + 1)), np.ones((0, DIM)),
       np.ones((2, 2, 2, DIM)), np.full((2, DIM), np.nan), np.full((2, DIM), -np.inf), np.full((2, DIM), 1e16),
       np.ones((2, DIM), dtype=object), np.ones((2, DIM), dtype=complex), np.zeros((2, DIM), dtype="M8[s]"),
       np.array([["a"] * DIM]), np.ma.masked_array(np.ones((2, DIM)), mask=True), np.zeros(2, dtype=[("a", float)]),
       np.array(1.0), "\ud800", True]


class Caller:
    """One policy, what it has given so far, and a random call at a time."""

    def __init__(self, seed):
        self.rng = random.Random(seed)
        self.numbers = np.random.default_rng(seed)
        self.policy = codband.Policy(self.rng.choice(SPECS), dim=DIM, seed=seed)
        self.decisions = []
        self.batches = []

    def either(self, good):
        """A good argument, or once in five times a bad one."""
        return self.rng.choice(BAD) if self.rng.random() < 0.2 else good()

    def user(self):
        return self.either(lambda: self.rng.choice([0, 1, 7, 2**64 - 1, "ann", "", "ü", np.int32(3), np.uint64(9), True]))

    def users(self, count):
        values = [self.rng.randrange(5) for _ in range(count)]
        return self.either(lambda: self.rng.choice([values, np.array(values), np.array(values, np.uint8),
                                                    tuple(map(str, values))]))

    def arms(self, *leading):
        values = self.numbers.normal(size=(*leading, self.rng.randint(1, 5), DIM))
        layouts = [values, values.astype(np.float32), (4 * values).astype(int), np.asfortranarray(values),
                   np.repeat(values, 2, axis=-2)[..., ::2, :], values[..., ::-1], values.tolist(), values > 0]
        return self.either(lambda: self.rng.choice(layouts))

    def reward(self):
        return self.either(lambda: self.rng.choice([0, 1, -1.0, 0.5, np.float32(0.25), 1e15]))

    def made(self, of):
        return self.either(lambda: self.rng.choice(of) if of else None)

    def choose(self):
        self.decisions.append(self.policy.choose(self.user(), self.arms(), self.either(lambda: None)))

    def rank(self):
        ranking = self.policy.rank(self.user(), self.arms(), floor=self.either(lambda: self.rng.random()))
        assert abs(ranking.probability.sum() - 1) < 1e-9 and ranking.order[0] == ranking.arm
        self.decisions.append(ranking.decision)

    def learn(self):
        self.policy.learn(self.made(self.decisions), self.reward())

    def choose_batch(self):
        count = self.rng.randrange(6)
        arms = self.arms(count) if self.rng.random() < 0.5 else self.arms()
        batch = self.policy.choose_batch(self.users(count), arms, self.either(lambda: None))
        if len(batch) > 0:
            self.decisions.append(batch[self.rng.randrange(-len(batch), len(batch))])
        self.batches.append(batch)

    def learn_batch(self):
        batch = self.made(self.batches)
        size = len(batch) if isinstance(batch, codband.Batch) else 2
        if self.rng.random() < 0.3 and self.decisions:
            batch, size = [self.made(self.decisions) for _ in range(2)], 2
        self.policy.learn_batch(batch, self.either(lambda: self.numbers.normal(size=size)))

    def drop(self):
        """Memory that was given comes back."""
        if self.batches:
            del self.batches[self.rng.randrange(len(self.batches))]
        del self.decisions[:-20]

    def forget(self):
        self.policy.forget(self.user())

    def look(self):
        self.policy.user(self.user())
        self.policy.describe()

    def restore(self):
        self.policy = codband.Policy.from_bytes(self.policy.to_bytes())

    def damage(self):
        state = bytearray(self.policy.to_bytes())
        if self.rng.random() < 0.5:
            del state[self.rng.randrange(len(state)):]
        else:
            state[self.rng.randrange(len(state))] ^= 1 << self.rng.randrange(8)
        other = codband.Policy.from_bytes(bytes(state))  # a digit of the seed may have become another
        assert other.dim > 0

    def decode(self):
        fields = self.made(self.decisions)
        fields = fields.to_dict() if isinstance(fields, codband.Decision) else fields
        if isinstance(fields, dict) and fields:
            fields[self.rng.choice(list(fields))] = self.either(lambda: 1)
        self.decisions.append(codband.Decision.from_dict(fields))

    def named_arms(self):
        name = self.rng.choice(["a", "b", "c", 4])
        features = self.either(lambda: self.numbers.normal(size=DIM))
        self.rng.choice([lambda: self.policy.add_arm(name, features), lambda: self.policy.remove_arm(name),
                         lambda: self.policy.warm_start({name: features})])()

    def fit(self):
        count = self.rng.randrange(4)
        self.policy.partial_fit(self.either(lambda: [self.rng.choice(["a", "b", "c"]) for _ in range(count)]),
                                self.either(lambda: [1.0] * count), self.either(lambda: None),
                                users=self.either(lambda: None))

    def predict(self):
        user = self.user()
        self.rng.choice([lambda: self.policy.predict(user=user), lambda: self.policy.predict_expectations(user=user),
                         lambda: self.policy.recommend(self.either(lambda: 2), self.either(lambda: None), user=user)])()


STEPS = [name for name in vars(Caller)
         if not name.startswith("_") and name not in ("either", "user", "users", "arms", "reward", "made")]


@pytest.mark.parametrize("seed", SEEDS)
def test_random_calls_of_a_policy(seed):
    caller = Caller(seed)
    refused = 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(150):
            step = caller.rng.choice(STEPS)
            before, policy = caller.policy.to_bytes(), caller.policy
            try:
                getattr(caller, step)()
            except REFUSED:
                refused += 1
                assert caller.policy is policy and policy.to_bytes() == before, step
    assert 10 < refused < 140


@pytest.mark.parametrize("seed", SEEDS)
def test_random_calls_of_an_engine(seed, tmp_path):
    rng = random.Random(seed)
    engine = codband.Engine(tmp_path / "data")
    refused = 0

    def either(good):
        return rng.choice(BAD) if rng.random() < 0.15 else good

    steps = {
        "put": lambda: engine.put_item(either(rng.choice("abc")), either({"x": rng.random()}), tags=either(["t"])),
        "rank": lambda: engine.rank(either(rng.choice("uvw")), either(None), event_id=either(f"e{rng.randrange(20)}"),
                                    context=either({"device": rng.choice("pq")}), user_features=either({"age": 3}),
                                    excluded=either([]), top_k=either(None), explain=rng.random() < 0.5),
        "reward": lambda: engine.reward(either(f"e{rng.randrange(20)}"), either(rng.random())),
        "activate": lambda: engine.activate(either(f"e{rng.randrange(20)}")),
        "delete": lambda: engine.delete_item(either(rng.choice("abc"))),
        "item": lambda: engine.get_item(either(rng.choice("abc"))),
        "user": lambda: engine.user(either(rng.choice("uvw"))),
        "forget": lambda: engine.forget_user(either(rng.choice("uvw"))),
        "models": lambda: engine.models(either(3)),
        "changes": lambda: engine.changes(either(3)),
        "stats": engine.stats, "checkpoint": engine.checkpoint, "check": engine.check,
    }
    def known():
        """What a call may change."""
        users = []
        for user in "uvw":
            try:
                users.append(engine.user(user)["observations"])
            except KeyError:
                users.append(None)
        return users, engine.stats()["items"], engine.stats()["pending"]

    for _ in range(80):
        step = rng.choice(list(steps))
        before = known()
        try:
            steps[step]()
        except (*REFUSED, codband.Error):
            refused += 1
            assert known() == before, step
    engine.check()
    engine.close()
    for step in ("rank", "stats", "check"):
        with pytest.raises((*REFUSED, codband.UnavailableError)):
            steps[step]()
    engine.close()
    assert refused > 10
