package import GRDB
import RecordModel

extension KeyValueTables {
    /// Performs a command in the transaction that is open on this connection.
    ///
    /// A pure function of the tables and the command. Whatever may be wrong with the command is an outcome; what is
    /// thrown is `DatabaseError` or `KeyValueCorruption`, after which the caller must stop applying and not skip the
    /// command.
    /// - Parameter time: the shard's, which the command moved already (`ShardClock`): what is forgotten is old by this.
    package static func apply(
        _ command: KeyValueCommand, at time: Int64, limits: KeyValueLimits = .standard, in db: Database
    ) throws -> KeyValueOutcome {
        if let refusal = limits.problem(with: command) { return .refused(refusal) }
        let outcome = try answer(to: command, at: time, limits: limits, in: db)
        try forgetOld(at: time, limits: limits, in: db)
        return outcome
    }

    private static func answer(
        to command: KeyValueCommand, at time: Int64, limits: KeyValueLimits, in db: Database
    ) throws -> KeyValueOutcome {
        var store = try StoreRow.find(command.store, in: db)
        store.modified = ShardClock.stamp(of: command.time, notBefore: store.modified)
        guard let key = command.idempotencyKey else {
            return try perform(command, on: &store, limits: limits, in: db)
        }
        if let earlier = try StoredAnswer.find(for: command, key: key, store: store, limits: limits, in: db) {
            return earlier
        }
        let outcome = try perform(command, on: &store, limits: limits, in: db)
        try StoredAnswer.save(outcome, for: command, key: key, store: &store, at: time, in: db)
        return outcome
    }

    private static func perform(
        _ command: KeyValueCommand, on store: inout StoreRow, limits: KeyValueLimits, in db: Database
    ) throws -> KeyValueOutcome {
        let batch = try KeyValueBatch(command.writes, store: store, in: db)
        let conflicts = try batch.conflicts(bytesMax: limits.conflictBytesMax, in: db)
        if !conflicts.isEmpty { return .conflict(conflicts) }
        let before = store.usage
        let after = batch.usage(after: before)
        if let refusal = limits.problem(before: before, after: after) { return .refused(refusal) }
        guard batch.changesAnything else {
            return .applied(versions: Array(repeating: nil, count: command.writes.count), usage: before)
        }
        // A store's id is given with its first row, which the pairs refer to.
        let id = try store.id ?? store.save(command.store, in: db)
        let versions = try batch.write(into: &store, id: id, device: command.device, in: db)
        store.usage = after
        if store.tombstones > limits.tombstonesMax {
            try forgetOlderTombstones(of: &store, id: id, keeping: limits.tombstonesMax / 2, in: db)
        }
        _ = try store.save(command.store, in: db)
        return .applied(versions: versions, usage: after)
    }

    /// Removes all but the last tombstones of a store and raises its floor to the last one removed.
    private static func forgetOlderTombstones(
        of store: inout StoreRow, id: Int64, keeping count: Int, in db: Database
    ) throws {
        let last = try db.cachedStatement(
            sql: """
                SELECT sequence FROM kv_pair WHERE store = ? AND value IS NULL ORDER BY sequence DESC LIMIT 1 OFFSET ?
                """)
        guard let sequence = try Int64.fetchOne(last, arguments: [id, count]) else { return }
        let removal = try db.cachedStatement(
            sql: "DELETE FROM kv_pair WHERE store = ? AND value IS NULL AND sequence <= ?")
        try removal.execute(arguments: [id, sequence])
        store.tombstones -= db.changesCount
        store.floor = UInt64(bitPattern: sequence)
    }
}

extension KeyValueLimits {
    /// What is wrong with a command whatever the store holds; nil if nothing.
    ///
    /// The edge asks before it sends a command on, so that what can only be refused is not logged; apply asks again.
    package func problem(with command: KeyValueCommand) -> KeyValueRefusal? {
        problemWithNames(of: command) ?? problemWithWrites(of: command)
    }

    private func problemWithNames(of command: KeyValueCommand) -> KeyValueRefusal? {
        let names = [("container", command.store.container), ("user", command.store.user)]
        for (what, name) in names where !(1...Limits.nameLengthMax).contains(name.utf8.count) {
            return KeyValueRefusal(.name, key: what, actual: name.utf8.count, max: Limits.nameLengthMax)
        }
        if let device = command.device, !(1...Limits.nameLengthMax).contains(device.utf8.count) {
            return KeyValueRefusal(.name, key: "device", actual: device.utf8.count, max: Limits.nameLengthMax)
        }
        if let key = command.idempotencyKey, !(1...64).contains(key.count) {
            return KeyValueRefusal(.name, key: "idempotency key", actual: key.count, max: 64)
        }
        return nil
    }

    /// A batch whose own values are more than a store may hold fits no store.
    private func problemWithWrites(of command: KeyValueCommand) -> KeyValueRefusal? {
        if command.writes.count > writesMax {
            return KeyValueRefusal(.writes, actual: command.writes.count, max: writesMax)
        }
        // By bytes, as the tables compare: Swift takes two spellings of one letter for the same key.
        var seen: Set<[UInt8]> = []
        var sum = KeyValueUsage()
        for write in command.writes {
            let length = write.key.utf8.count
            guard (1...keyBytesMax).contains(length) else {
                return KeyValueRefusal(.keyBytes, key: write.key, actual: length, max: keyBytesMax)
            }
            guard seen.insert(Array(write.key.utf8)).inserted else {
                return KeyValueRefusal(.duplicateKey, key: write.key, actual: 2, max: 1)
            }
            guard let value = write.value else { continue }
            if let refusal = problem(with: value, of: write.key) { return refusal }
            sum.keys += 1
            sum.bytes += value.sizeBytes
        }
        return problem(before: KeyValueUsage(), after: sum)
    }

    private func problem(with value: PropertyValue, of key: String) -> KeyValueRefusal? {
        if value.depth > PropertyValue.depthMax {
            return KeyValueRefusal(.valueDepth, key: key, actual: value.depth, max: PropertyValue.depthMax)
        }
        if value.memberCount > valueMembersMax {
            return KeyValueRefusal(.valueMembers, key: key, actual: value.memberCount, max: valueMembersMax)
        }
        if value.sizeBytes > valueBytesMax {
            return KeyValueRefusal(.valueBytes, key: key, actual: value.sizeBytes, max: valueBytesMax)
        }
        return nil
    }

    /// Which limit a store would be over after a batch; nil if none, or if the batch does not make it worse. Only
    /// the final state counts, so a batch may delete and set in any order.
    func problem(before: KeyValueUsage, after: KeyValueUsage) -> KeyValueRefusal? {
        if after.keys > keysMax, after.keys > before.keys {
            return KeyValueRefusal(.keys, actual: after.keys, max: keysMax)
        }
        if after.bytes > storeBytesMax, after.bytes > before.bytes {
            return KeyValueRefusal(.storeBytes, actual: after.bytes, max: storeBytesMax)
        }
        return nil
    }
}
