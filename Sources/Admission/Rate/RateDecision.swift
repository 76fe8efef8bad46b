/// What a node does with a request, as far as its container's rate goes.
package enum RateDecision: Hashable, Sendable {
    /// The request may go on. So many more would be accepted at once; the burst is whole again after
    /// `resetMilliseconds`.
    case accepted(remaining: Int, resetMilliseconds: Int)
    /// The container's limit is met: 429 `THROTTLED`. A client that comes back after exactly so long finds room, unless
    /// others do not keep to what they were told. From 1 to 30,001.
    case refused(retryAfterMilliseconds: Int)
    /// The node holds no share, or has spent it while the ledger has requests saved: ask the ledger, wait a moment,
    /// decide again; else 503.
    case needsShare
}

/// A look at a limiter, for headers and for `limits explain`.
package struct RateState: Hashable, Sendable {
    /// The share in force, in micro-requests a second; 0: none.
    package var microRate: UInt64
    /// Whole requests that would be accepted now.
    package var remaining: Int
    /// Until one (more) request would be accepted; nil without a share.
    package var nextMilliseconds: Int?
    /// Until the burst is whole; nil without a share.
    package var resetMilliseconds: Int?
    /// When the share expires, in nanoseconds of the node's monotonic clock; 0: no share.
    package var validUntil: UInt64
}
