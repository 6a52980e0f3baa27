// Made from the server's openapi.json by generate_types.mjs; do not edit.

export type Erasing = {
  /** Its id. */
  erasure: string;
  /** The path that tells how far it is. */
  status: string;
};

export type Erasure = {
  erasure: string;
  state: "erasing" | "erased";
  /** What something of them is still in; empty once they are erased. */
  waitsFor: string[];
};

/** Numbers, their mean and its 95% interval, from two on. */
export type Moments = {
  count: number;
  sum: number;
  squares: number;
  mean?: number;
  low?: number;
  high?: number;
};

export type Activity = {
  decisions: number;
  rewards: Moments;
  rewardsBy: {
    mode: "online" | "apprentice" | "logging_only";
    source: "policy" | "floor" | "baseline";
    count: number;
    sum: number;
  }[];
  defaulted: number;
  duplicate: number;
  late: number;
  unknown: number;
  /** Of each rewarded decision an estimate of what the first action would have brought. */
  baseline: Moments;
  /** The same of any action with equal chances. */
  uniform: Moments;
  compared: number;
  agreed: number;
  delaySeconds: Moments;
  changes: number;
  users: number;
  groups: {
    modelId: number;
    users: number;
  }[];
};

export type Stats = {
  from: string;
  to: string;
  stepSeconds: number;
  points: (Activity & {
    time: string;
  })[];
  total: Activity;
};

export type Session = {
  keyRequired: boolean;
  role: string | null;
  name?: string;
  csrfToken?: string;
};

export type Login = {
  key: string;
};

export type Settings = {
  settings: {
    name: string;
    value: unknown;
    default: unknown;
    origin: string;
    allowed: string;
    help: string;
  }[];
};

export type Keys = {
  required: boolean;
  keys: {
    name: string;
    role: string;
    lastUse: string | null;
  }[];
};

export type Logs = {
  enabled: boolean;
  logs: {
    name: string;
    bytes: number;
  }[];
};

export type EvaluationReply = {
  verdict: string;
  events: number;
  users: number;
  actions: number;
  skippedLines: number;
  firstProblem: string;
  confidence: number;
  warnings: string[];
  policies: {
    name: string;
    logged: boolean;
    effectiveEvents: number;
    warnings: string[];
    estimates: {
      estimator: string;
      value?: number;
      low?: number;
      high?: number;
      guaranteedLow?: number;
      guaranteedHigh?: number;
      headline: boolean;
    }[];
  }[];
};

export type PersonalizerRankReply = {
  ranking: {
    id: string;
    probability: number;
  }[];
  eventId: string;
  rewardActionId: string;
};

/** The fields of RankRequest, and slots. */
export type MultiSlotRequest = {
  /** As in RankRequest. */
  contextFeatures?: unknown;
  actions: Action[];
  /** At most as many as actions; slots times actions are 50,000 at most. */
  slots: {
    id: string;
    /** One of the actions: what the slot would show anyway. */
    baselineAction: string;
    /** An object, or an array of objects. */
    features?: unknown;
    excludedActions?: string[];
  }[];
  eventId?: string;
  deferActivation?: boolean;
};

export type MultiSlotReply = {
  slots: {
    id: string;
    rewardActionId: string;
  }[];
  eventId: string;
};

export type SlotRewards = {
  reward: {
    slotId: string;
    value: number;
  }[];
};

export type ItemPage = {
  items: StoredItem[];
  next: string | null;
};

export type FeatureReport = {
  /** features.max_columns; 0 where the number of features is fixed. */
  limit: number;
  columns: {
    name: string;
    kind: "item" | "context" | "user" | "crossing" | "shared";
    /** Rewarded decisions in which it was not 0. */
    count: number;
    min: number;
    max: number;
    /** |parameter| × root mean square of the values, over the models. */
    importance: number;
  }[];
  /** The first names that share columns. */
  sharing: string[];
};

/** Numbers; or an object of named features, or an array of such objects. Every name has a column of its own. Where features.dimension is set: as many numbers, and names are hashed into them. */
export type Features = number[] | NamedFeatures | NamedFeatures[];

/** A number is the value of the feature; a string w gives the feature "name=w" with value 1, an array of strings one such feature each, an array of numbers the features "name[0]", "name[1]" and so on; true and false give "name=true" and "name=false"; the names of nested objects are joined with dots. null is refused. Where features.dimension is set, true gives "name" with value 1 and false nothing, and arrays of numbers are refused. */
export type NamedFeatures = {[name: string]: number | string | boolean | string[] | number[] | NamedFeatures};

/** The id of an item of the catalogue, or an action with its own features. */
export type Action = string | {
  id: string;
  features?: Features;
};

export type RankRequest = {
  /** "user" is accepted as well. Without it the user is found in the context where features.user_from says, or the visitor is anonymous. */
  userId?: string;
  /** As contextFeatures: what is known of the user. */
  userFeatures?: unknown;
  /** Generated if it is not given. */
  eventId?: string;
  /** Without it the whole catalogue is ranked. */
  actions?: Action[];
  /** An object of named features, or an array of such objects: the ranking depends on it. Where features.dimension is set: any JSON, for the decision log alone. */
  contextFeatures?: unknown;
  excludedActions?: string[];
  /** Number of actions to return. */
  topK?: number;
  deferActivation?: boolean;
};

export type RankedItem = {
  id: string;
  /** The propensity: the probability with which it was, or would have been, chosen. */
  probability: number;
  /** What the candidates are ordered by. */
  score: number;
  /** Posterior mean of the expected reward. */
  mean: number;
  /** Its posterior standard deviation. */
  width: number;
};

export type RankReply = {
  eventId: string;
  /** The action to show. */
  rewardActionId: string;
  ranking: RankedItem[];
  /** null: none yet. */
  modelId: number | null;
  explanation?: Explanation;
};

export type Explanation = {
  /** Parameter times feature of the chosen action, largest first. */
  contributions: {
    feature: string;
    value: number;
  }[];
  intercept: number;
  /** The part of the mean that is the action's own, beyond its features; contributions + intercept + item = mean */
  item: number;
  groupUsers: number;
  groupObservations: number;
  lastChange: string | null;
};

export type RewardRequest = {
  value: number;
};

export type RewardReply = {
  eventId: string;
  status: "accepted" | "duplicate";
  /** Position in the log; 0 unless accepted and learned. */
  sequence: number;
};

export type HistoryRequest = {
  events: {
    userId: string;
    /** An item of the catalogue, unless there are features. */
    itemId: string;
    /** What it brought. */
    value: number;
    features?: Features;
    /** Any text; tells equal events apart. */
    time?: string;
    /** Made of the other fields if it is not given. */
    eventId?: string;
  }[];
};

export type HistoryReply = {
  accepted: number;
  duplicates: number;
  skipped: {
    index: number;
    reason: string;
  }[];
  status: "ok";
};

export type Item = {
  /** Required in an import; optional where the path has it. */
  id?: string;
  features: Features;
  tags?: string[];
};

export type StoredItem = {
  id: string;
  features: number[];
  /** What was learned of the item itself, beyond its features; missing before its first reward. */
  learned?: {
    shown: number;
    /** The sum. */
    reward: number;
    /** Expected reward beyond what the features say. */
    effect: number;
    /** Its standard deviation. */
    width: number;
    groups: {
      modelId: number | null;
      users: number;
      effect: number;
      width: number;
    }[];
  };
  /** The named features, if it has any. */
  named?: {
    name: string;
    value: number;
  }[];
  tags: string[];
};

export type ImportReply = {
  accepted: number;
  status: "ok";
  tookMillis: number;
};

export type Change = {
  time: string;
  userId?: string;
  /** null: none yet. */
  fromModelId: number | null;
  /** null: none yet. */
  toModelId: number | null;
  /** The last rewards, beside what was expected of them and those before. */
  evidence?: {
    rewards: number;
    expected: number;
    got: number;
    before: number;
  };
};

export type Changes = {
  changes: Change[];
};

export type User = {
  userId: string;
  /** null: none yet. */
  modelId: number | null;
  modelChance: number;
  firstSeen: string;
  since: string;
  observations: number;
  periodObservations: number;
  changes: Change[];
  lastRewards: {
    time: string;
    reward: number;
    expected: number;
  }[];
};

export type Model = {
  modelId: number;
  /** Its share of all periods. */
  popularity: number;
  /** Users assigned to it now. */
  users: number;
  /** Current and past. */
  periods: number;
  observations: number;
  /** The best items for the group: its expected reward, with what was learned of the item itself. */
  topItems: {
    id: string;
    mean: number;
  }[];
  bottomItems: {
    id: string;
    mean: number;
  }[];
  topTags: {
    tag: string;
    count: number;
    /** How much more often the best items have it than all items. */
    lift: number;
  }[];
};

export type ModelWithParameter = Model & {
  parameter: number[];
};

export type Models = {
  models: Model[];
};

export type BackupRequest = {
  /** A name that no backup has yet. It does not end in .partial. */
  name: string;
};

export type BackupReply = {
  name: string;
};

export type Error = {
  error: {
    code: "BadArgument" | "BadRequest" | "Unauthorized" | "Forbidden" | "NotFound" | "MethodNotAllowed" | "RequestTimeout" | "CheckFailed" | "Conflict" | "Late" | "BodyTooLarge" | "ExpectationFailed" | "TooManyFailures" | "HostNotAllowed" | "OriginNotAllowed" | "UnsupportedMediaType" | "NotImplemented" | "HeadersTooLarge" | "Internal" | "Corruption" | "IoError" | "Unavailable" | "NotLearned" | "NotReady" | "TooManyConnections" | "NoSpace";
    /** The field at fault, such as actions[3].features. */
    field?: string;
    message: string;
    /** The line of an import that is at fault, from 1. */
    line?: number;
    /** Items of an import that are in the catalogue nevertheless. */
    imported?: number;
  };
};
