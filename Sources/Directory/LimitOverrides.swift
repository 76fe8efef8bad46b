package import RecordModel
package import Wire

/// One limit's new value.
package struct LimitChange: Hashable, Sendable, WireMessage {
    package var limit: ContainerLimit
    /// Nil: what was set is taken back.
    package var value: Int64?

    package init(_ limit: ContainerLimit, _ value: Int64?) {
        self.limit = limit
        self.value = value
    }

    package static var blank: Self { LimitChange(.requestsPerSecond, nil) }

    package mutating func fields(_ wire: inout WireFields) throws(WireError) {
        try wire.required(1, &limit)
        try wire.field(2, &value)
    }
}

/// Where a limit's value comes from.
package enum LimitSource: String, Hashable, Sendable, CaseIterable {
    case `default`, cluster, container
}

/// The limits that were set for the cluster or for one container; all others are as they would be.
package struct LimitOverrides: Hashable, Sendable, WireMessage {
    /// Grows by one with every command that changes a value.
    package var epoch: UInt64 = 0
    package var values: [ContainerLimit: Int64] = [:]

    package init() {}

    /// Whether a change made it differ; then it has a new epoch.
    mutating func apply(_ changes: [LimitChange]) -> Bool {
        let old = values
        for change in changes { values[change.limit] = change.value }
        if values == old { return false }
        epoch += 1
        return true
    }

    package static var blank: Self { LimitOverrides() }

    package mutating func fields(_ wire: inout WireFields) throws(WireError) {
        try wire.field(1, &epoch)
        try wire.field(2, &changes)
    }

    /// The values, sorted by the limits' names.
    private var changes: [LimitChange] {
        get { values.sorted { $0.key < $1.key }.map { LimitChange($0.key, $0.value) } }
        set { for change in newValue { values[change.limit] = change.value } }
    }
}
