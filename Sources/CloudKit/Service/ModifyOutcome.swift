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
    /// The results of a call that saves and deletes, by ID.
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

    /// The item of a call that saves one.
    func savedItem<ID, Item>() throws -> Item where Element == ModifyOutcome<ID, Item> {
        guard case .saved(_, let result)? = first else { throw CKError.unreadable("\(Item.self)") }
        return try result.get()
    }

    /// The ID of a call that deletes one item.
    func deletedID<ID, Item>() throws -> ID where Element == ModifyOutcome<ID, Item> {
        guard case .deleted(let id, let result)? = first else { throw CKError.unreadable("\(Item.self)") }
        try result.get()
        return id
    }
}

extension Result where Failure == any Error {
    /// Calls the blocks of an operation that saves and deletes.
    func tell<ID, Item>(
        saves: ((ID, Result<Item, any Error>) -> Void)?, deletes: ((ID, Result<Void, any Error>) -> Void)?,
        end: ((Result<Void, any Error>) -> Void)?, olderEnd: (([Item]?, [ID]?, (any Error)?) -> Void)?
    ) where Success == [ModifyOutcome<ID, Item>] {
        var tally = ModifyTally<ID, Item>()
        for outcome in (try? get()) ?? [] {
            tally.note(outcome)
            switch outcome {
            case .saved(let id, let result): saves?(id, result)
            case .deleted(let id, let result): deletes?(id, result)
            }
        }
        end?(map { _ in () })
        olderEnd?(tally.saved, tally.deleted, tally.error(of: self))
    }

    /// Calls the blocks of an operation that fetches.
    func tell<ID: Hashable, Item>(
        each: ((ID, Result<Item, any Error>) -> Void)?, end: ((Result<Void, any Error>) -> Void)?,
        olderEnd: (([ID: Item]?, (any Error)?) -> Void)?
    ) where Success == [(ID, Result<Item, any Error>)] {
        var items: [ID: Item] = [:]
        var errors: [AnyHashable: any Error] = [:]
        for (id, result) in (try? get()) ?? [] {
            each?(id, result)
            if case .success(let item) = result { items[id] = item }
            errors[id] = result.failure
        }
        end?(map { _ in () })
        olderEnd?(items, failure ?? CKError.partialFailure(errors))
    }
}
