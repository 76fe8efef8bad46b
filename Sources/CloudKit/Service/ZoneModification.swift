import RecordModel

/// A zone, and whether it is to be there.
typealias ZoneOperation = (id: CKRecordZone.ID, isSave: Bool)

/// One call that creates and deletes zones.
struct ZoneModification {
    let service: DatabaseService

    func run(_ operations: [ZoneOperation]) async throws(CKError) -> [ModifyZoneResult] {
        guard Set(operations.map(\.id)).count == operations.count else {
            throw CKError(.invalidArguments, reason: "a zone is to be saved or deleted twice in one call")
        }
        return try await service.inRequests(operations, modify, failed: Self.failed)
    }

    private static func failed(_ operation: ZoneOperation, _ error: CKError) -> ModifyZoneResult {
        operation.isSave ? .saved(operation.id, .failure(error)) : .deleted(operation.id, .failure(error))
    }

    /// Changes zones by one request, or by several where one of them may be what all were refused for.
    private func modify(_ operations: [ZoneOperation]) async throws(CKError) -> [ModifyZoneResult] {
        do throws(CKError) {
            return try await modifyTogether(operations)
        } catch {
            guard error.code == .invalidArguments else { throw error }
            if operations.count == 1 { return [Self.failed(operations[0], error)] }
            let second = Array(operations[(operations.count / 2)...])
            let results = try await modify(Array(operations[..<(operations.count / 2)]))
            do throws(CKError) {
                return results + (try await modify(second))
            } catch {
                return results + second.map { Self.failed($0, error) }
            }
        }
    }

    private func modifyTogether(_ operations: [ZoneOperation]) async throws(CKError) -> [ModifyZoneResult] {
        try checkCancellation()
        var writer = JSONWriter()
        writer.object { writer in
            writer.member("operations", each: operations) { writer, operation in
                writer.object { writer in
                    writer.member("operationType", operation.isSave ? "create" : "delete")
                    writer.key("zone")
                    writer.object { $0.member("zoneID", operation.id) }
                }
            }
        }
        let answer = try await service.write("zones/modify", writer.bytes)
        let members = try service.members("zones", of: answer, count: operations.count, "zone for each operation")
        let mapping = service.mapping
        return zip(operations, members).map { operation, json in
            let (id, isSave) = operation
            let error = mapping.item(json)
            if !isSave, error == nil || error?.code == .zoneNotFound { return .deleted(id, .success(())) }
            if let error { return Self.failed(operation, error) }
            return .saved(id, Result { try RecordReader.zone(json) })
        }
    }
}

/// The outcome of one item of a call that saves and deletes.
enum ModifyOutcome<ID: Hashable & Sendable, Item: Sendable>: Sendable {
    case saved(ID, Result<Item, any Error>)
    case deleted(ID, Result<Void, any Error>)
}

typealias ModifyResult = ModifyOutcome<CKRecord.ID, CKRecord>
typealias ModifyZoneResult = ModifyOutcome<CKRecordZone.ID, CKRecordZone>
typealias ModifySubscriptionResult = ModifyOutcome<CKSubscription.ID, CKSubscription>

/// What the older block of an operation gets at the end.
struct ModifyTally<ID: Hashable & Sendable, Item: Sendable> {
    private(set) var saved: [Item] = []
    private(set) var deleted: [ID] = []
    private var errors: [AnyHashable: any Error] = [:]

    mutating func note(_ outcome: ModifyOutcome<ID, Item>) {
        switch outcome {
        case .saved(_, .success(let item)): saved.append(item)
        case .deleted(let id, .success): deleted.append(id)
        case .saved(let id, .failure(let error)), .deleted(let id, .failure(let error)): errors[id] = error
        }
    }

    /// That of the whole, else `partialFailure` where items failed.
    func error(of whole: Result<some Any, any Error>) -> (any Error)? {
        whole.failure ?? CKError.partialFailure(errors)
    }
}

extension Array {
    func byID<ID, Item>() -> (
        saveResults: [ID: Result<Item, any Error>], deleteResults: [ID: Result<Void, any Error>]
    ) where Element == ModifyOutcome<ID, Item> {
        var saved: [ID: Result<Item, any Error>] = [:]
        var deleted: [ID: Result<Void, any Error>] = [:]
        for outcome in self {
            switch outcome {
            case .saved(let id, let result): saved[id] = result
            case .deleted(let id, let result): deleted[id] = result
            }
        }
        return (saved, deleted)
    }

    func savedItem<ID, Item>() throws -> Item where Element == ModifyOutcome<ID, Item> {
        guard case .saved(_, let result)? = first else { throw CKError.unreadable("\(Item.self)") }
        return try result.get()
    }

    func deletedID<ID, Item>() throws -> ID where Element == ModifyOutcome<ID, Item> {
        guard case .deleted(let id, let result)? = first else { throw CKError.unreadable("\(Item.self)") }
        try result.get()
        return id
    }
}

extension CKOperation {
    final func tell<ID, Item>(
        _ result: Result<[ModifyOutcome<ID, Item>], any Error>,
        saves: ((ID, Result<Item, any Error>) -> Void)?, deletes: ((ID, Result<Void, any Error>) -> Void)?,
        end: ((Result<Void, any Error>) -> Void)?, olderEnd: (([Item]?, [ID]?, (any Error)?) -> Void)?
    ) {
        var tally = ModifyTally<ID, Item>()
        for outcome in (try? result.get()) ?? [] {
            tally.note(outcome)
            switch outcome {
            case .saved(let id, let result): saves?(id, result)
            case .deleted(let id, let result): deletes?(id, result)
            }
        }
        let whole = ending(of: result)
        end?(whole.map { _ in () })
        olderEnd?(tally.saved, tally.deleted, tally.error(of: whole))
    }

    final func tell<ID: Hashable, Item>(
        _ result: Result<[(ID, Result<Item, any Error>)], any Error>,
        each: ((ID, Result<Item, any Error>) -> Void)?, end: ((Result<Void, any Error>) -> Void)?,
        olderEnd: (([ID: Item]?, (any Error)?) -> Void)?
    ) {
        var items: [ID: Item] = [:]
        var errors: [AnyHashable: any Error] = [:]
        for (id, result) in (try? result.get()) ?? [] {
            each?(id, result)
            if case .success(let item) = result { items[id] = item }
            errors[id] = result.failure
        }
        let whole = ending(of: result)
        end?(whole.map { _ in () })
        olderEnd?(items, whole.failure ?? CKError.partialFailure(errors))
    }
}
