"""codband: recommendations for people who change their minds.

Three ways in:

- ``codband.Policy("codband", dim=25)``: a policy in this process, on NumPy arrays.
- ``codband.Engine("directory")``: the durable engine in this process; ``codband.Client(url)`` and
  ``codband.AsyncClient(url)``: the same in a server.
- ``codband.simulate(...)``, ``replay``, ``stress``, ``evaluate``, ``ips`` …: research.
"""

from ._core import Batch, Decision, Outcome, Random, Ranking, __version__
from .aio import AsyncClient
from .client import Client, RankReply
from .engine import Engine
from .errors import (AuthError, ConflictError, DataError, Error, LateError, NotLearnedError,
                     UnavailableError)
from .ope import Estimate, Log, dm, dr, ips, read_log, replay_match, snips
from .policy import Policy, policies
from .research import (Comparison, CustomPolicy, Environment, PolicyResult, evaluate, prepare, replay,
                       simulate, stress)

__all__ = [
    "AsyncClient", "AuthError", "Batch", "Client", "Comparison", "ConflictError", "CustomPolicy",
    "DataError", "Decision", "Engine", "Environment", "Error", "Estimate", "LateError", "Log",
    "NotLearnedError", "Outcome", "Policy", "PolicyResult", "Random", "RankReply", "Ranking",
    "UnavailableError", "__version__", "dm", "dr", "evaluate", "ips", "policies", "prepare", "read_log", "replay",
    "replay_match", "simulate", "snips", "stress",
]
