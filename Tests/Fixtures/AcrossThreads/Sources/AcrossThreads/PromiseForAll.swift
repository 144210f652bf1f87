import Promises

/// A global constant is everybody's.
let promiseForAll = Promise<Ledger>.value(Ledger())  // error: 'promiseForAll' is not concurrency-safe
