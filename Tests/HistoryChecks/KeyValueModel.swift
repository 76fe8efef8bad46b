/// One key-value store: batches of writes of which all happen or nothing, a version for each changed key.
///
/// Limits are not part of it: withdraw calls that were refused for one.
package struct KeyValueModel: HistoryModel {
    /// How much a store holds.
    package struct Usage: Hashable, Sendable {
        package var keys: Int
        package var bytes: Int

        package init(keys: Int, bytes: Int) { (self.keys, self.bytes) = (keys, bytes) }
    }

    /// One write of a batch.
    package struct Write: Hashable, Sendable, CustomStringConvertible {
        /// What a writer expects of a key.
        package enum Expectation: Hashable, Sendable {
            case anything
            case absent
            case version(Version)
        }

        package var key: String
        /// Nil deletes.
        package var value: String?
        package var expectation: Expectation

        /// Sets or deletes a key.
        package init(_ key: String, _ value: String?, expecting expectation: Expectation = .anything) {
            self.key = key
            self.value = value
            self.expectation = expectation
        }

        package var description: String {
            let expected =
                switch expectation {
                case .anything: ""
                case .absent: " if absent"
                case .version(let version): " if \(version)"
                }
            return "\(key) = \(value ?? "nil")\(expected)"
        }
    }

    /// What a client asks of the store.
    package enum Operation: Hashable, Sendable {
        case write([Write])
        case read([String])
        /// All keys, as who follows the feed has them when there is nothing more to come.
        case view
        /// The cluster is as it was here, from a backup, and begins another life.
        case restore(incarnation: UInt64)
    }

    /// What it is told.
    package enum Outcome: Hashable, Sendable {
        /// The new version of each write's key; nil where there was nothing to delete. What the store holds then is nil
        /// where it was not told.
        case applied([Version?], Usage? = nil)
        /// The keys that were not as expected, in the order of the writes.
        case conflict([String])
        /// What is there, for `read` and `view`.
        case found([String: Versioned<String>])
        case restored
    }

    /// What the store is.
    package struct State: Hashable, Sendable {
        /// The number of its life.
        package var incarnation: UInt64
        /// The number of its last change.
        package var sequence: UInt64
        /// The keys that have a value.
        package var entries: [String: Versioned<String>]
        /// The versions of deletions.
        package var deletions: [String: Version]

        /// A store as it is; an empty one by default.
        package init(
            incarnation: UInt64 = 1, sequence: UInt64 = 0, entries: [String: Versioned<String>] = [:],
            deletions: [String: Version] = [:]
        ) {
            self.incarnation = incarnation
            self.sequence = sequence
            self.entries = entries
            self.deletions = deletions
        }
    }

    package let initial: State
    private let sizeOf: @Sendable (String) -> Int

    /// - Parameters:
    ///   - initial: the store as it is when the history begins.
    ///   - sizeOf: how many bytes a value counts for.
    package init(_ initial: State = State(), sizeOf: @escaping @Sendable (String) -> Int = { $0.utf8.count }) {
        self.initial = initial
        self.sizeOf = sizeOf
    }

    package func changesNothing(_ operation: Operation, outcome: Outcome?) -> Bool {
        switch (operation, outcome) {
        case (.read, _), (.view, _), (_, .conflict): true
        case (.write, .applied(let versions, _)): versions.allSatisfy { $0 == nil }
        case (.write, _), (.restore, _): false
        }
    }

    package func hints(of calls: [History<Operation, Outcome>.Call]) -> [UInt64?] {
        var first: [[String?]: UInt64] = [:]
        for case .found(let entries)? in calls.map(\.outcome) {
            for (key, entry) in entries {
                first[[key, entry.content]] = min(first[[key, entry.content]] ?? .max, entry.version.sequence)
            }
        }
        return calls.map { call in
            switch (call.operation, call.outcome) {
            case (_, .applied(let versions, _)): versions.compactMap { $0?.sequence }.max().map { $0 &* 2 }
            case (_, .found(let entries)): entries.values.map(\.version.sequence).max().map { $0 &* 2 + 1 }
            case (.write(let writes), nil): writes.compactMap { first[[$0.key, $0.value]] }.min().map { $0 &* 2 }
            case (_, .conflict), (.read, nil), (.view, nil), (.restore, _), (_, .restored): nil
            }
        }
    }

    package func mayCome(_ operation: Operation, outcome: Outcome, after state: State) -> Bool {
        switch outcome {
        case .applied(let versions, _): versions.allSatisfy { $0.map { $0.sequence > state.sequence } ?? true }
        case .found(let entries):
            entries.allSatisfy { $1.version.sequence > state.sequence || state.entries[$0] == $1 }
        case .conflict, .restored: true
        }
    }

    package func states(after operation: Operation, outcome: Outcome?, from state: State) -> [State] {
        switch operation {
        case .view: return outcome == nil || outcome == .found(state.entries) ? [state] : []
        case .read(let keys):
            let wanted = Set(keys)
            let found = state.entries.filter { wanted.contains($0.key) }
            return outcome == nil || outcome == .found(found) ? [state] : []
        case .write(let writes):
            let (answer, next) = state.after(writes)
            if case .applied(let versions, let usage?)? = outcome {
                return answer == .applied(versions) && usage == next.usage(sizeOf) ? [next] : []
            }
            return outcome == nil || outcome == answer ? [next] : []
        case .restore(let incarnation):
            var next = state
            next.incarnation = incarnation
            return [next]
        }
    }
}

extension KeyValueModel.State {
    fileprivate func after(_ writes: [KeyValueModel.Write]) -> (KeyValueModel.Outcome, Self) {
        let clashes = writes.filter { !isAsExpected($0) }.map(\.key)
        guard clashes.isEmpty else { return (.conflict(clashes), self) }
        var next = self
        return (.applied(writes.map { next.apply($0) }), next)
    }

    fileprivate func usage(_ sizeOf: (String) -> Int) -> KeyValueModel.Usage {
        KeyValueModel.Usage(keys: entries.count, bytes: entries.values.reduce(0) { $0 + sizeOf($1.content) })
    }

    private func isAsExpected(_ write: KeyValueModel.Write) -> Bool {
        switch write.expectation {
        case .anything: true
        case .absent: entries[write.key] == nil
        case .version(let version): (entries[write.key]?.version ?? deletions[write.key]) == version
        }
    }

    private mutating func apply(_ write: KeyValueModel.Write) -> Version? {
        guard write.value != nil || entries[write.key] != nil else { return nil }
        sequence += 1
        let version = Version(incarnation, sequence)
        entries[write.key] = write.value.map { Versioned($0, version) }
        deletions[write.key] = write.value == nil ? version : nil
        return version
    }
}

extension KeyValueModel.Operation: CustomStringConvertible {
    package var description: String {
        switch self {
        case .write(let writes): "set " + writes.map(\.description).joined(separator: "; ")
        case .read(let keys): "get \(keys.joined(separator: ", "))"
        case .view: "view"
        case .restore(let incarnation): "restore as \(incarnation)"
        }
    }
}

extension KeyValueModel.Outcome: CustomStringConvertible {
    package var description: String {
        switch self {
        case .applied(let versions, let usage):
            "applied [\(versions.map { $0?.description ?? "-" }.joined(separator: ", "))]"
                + (usage.map { ", \($0.keys) keys of \($0.bytes) bytes" } ?? "")
        case .conflict(let keys): "conflict on \(keys.joined(separator: ", "))"
        case .found(let entries): shown(entries)
        case .restored: "restored"
        }
    }
}

extension KeyValueModel.State: CustomStringConvertible {
    package var description: String { "store \(incarnation) at \(sequence): \(shown(entries))" }
}
