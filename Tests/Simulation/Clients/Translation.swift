import Cluster
import HistoryChecks
import KeyValueStore
import RecordModel
import RecordStore

// Between what the production code says and what the checkers judge.

extension Version {
    init(_ tag: ChangeTag) { self.init(tag.incarnation, tag.sequence) }

    var tag: ChangeTag { ChangeTag(incarnation: incarnation, sequence: sequence) }
}

extension RecordWrite {
    /// The change as a command carries it.
    var change: RecordChange {
        let kind: RecordChange.Kind =
            switch self.kind {
            case .create: .create
            case .update: .update
            case .forceUpdate: .forceUpdate
            case .replace: .replace
            case .forceReplace: .forceReplace
            case .delete: .delete
            case .forceDelete: .forceDelete
            }
        let isDelete = kind == .delete || kind == .forceDelete
        return RecordChange(
            kind, name, type: isDelete ? nil : Place.type, changeTag: version?.tag,
            fields: fields.sorted { $0.key < $1.key }.map {
                RecordChange.FieldChange(name: $0.key, value: $0.value.map { .string($0) })
            })
    }
}

extension WriteOutcome {
    /// - Parameter showsRecords: whether the records that clashed are those of the moment of judgement.
    init(_ outcome: ItemOutcome, showsRecords: Bool) throws(UnexpectedAnswer) {
        switch outcome {
        case .saved(let record): self = .saved(Version(record.changeTag))
        case .deleted: self = .deleted
        case .failed(let error, let record):
            let copy = showsRecords ? record.map(RecordCopy.init) : nil
            switch error.code {
            case .exists: self = .exists(copy)
            case .conflict: self = .conflict(copy)
            case .notFound: self = .notFound
            case .atomicError: self = .notDone
            default: throw UnexpectedAnswer("\(error.code.rawValue): \(error.reason)")
            }
        }
    }
}

extension RecordCopy {
    init(_ record: RecordModel.Record) {
        var content: [String: String] = [:]
        for field in record.fields.all {
            if case .string(let text) = field.value { content[field.name] = text }
        }
        self.init(content, Version(record.changeTag))
    }

    /// A record as a read shows it.
    init(json: JSONValue) throws(UnexpectedAnswer) {
        guard let tag = json["recordChangeTag"]?.string.flatMap(ChangeTag.init),
            case .object(let fields)? = json["fields"]
        else { throw UnexpectedAnswer("no record: \(json)") }
        var content: [String: String] = [:]
        for field in fields { content[field.key] = field.value["value"]?.string }
        self.init(content, Version(tag))
    }
}

extension ZoneModel.Outcome {
    init(_ outcome: RecordOutcome, showsRecords: Bool) throws(UnexpectedAnswer) {
        func items(_ items: [ItemOutcome]) throws(UnexpectedAnswer) -> [WriteOutcome] {
            var outcomes: [WriteOutcome] = []
            for item in items { outcomes.append(try WriteOutcome(item, showsRecords: showsRecords)) }
            return outcomes
        }
        switch outcome {
        case .records(let records): self = .items(try items(records))
        case .atomicFailure(let records): self = .batchFailed(try items(records))
        case .zone(.exists(let state)): self = .zone(incarnation: state.incarnation)
        case .zone(.deleted): self = .zoneDeleted
        case .refused(let error) where error.code == .zoneNotFound: self = .zoneNotFound
        default: throw UnexpectedAnswer("\(outcome)")
        }
    }
}

/// An answer that the clients of a simulation should never get.
struct UnexpectedAnswer: Error, CustomStringConvertible {
    var description: String
    init(_ description: String) { self.description = description }
}

extension ShardAnswer {
    /// The records of an answer, by name; nil for those that are not there, or were deleted.
    func records() throws(UnexpectedAnswer) -> [(name: String, record: RecordCopy?, version: Version?)] {
        guard let elements = (try? JSONParser.parse(bytes))?.array else { throw UnexpectedAnswer("no array") }
        var records: [(name: String, record: RecordCopy?, version: Version?)] = []
        for element in elements {
            guard let name = element["recordName"]?.string else { throw UnexpectedAnswer("no name: \(element)") }
            if let code = element["serverErrorCode"]?.string {
                guard code == ErrorCode.notFound.rawValue else { throw UnexpectedAnswer("\(element)") }
                records.append((name, nil, nil))
            } else if element["deleted"] == .bool(true) {
                let tag = element["recordChangeTag"]?.string.flatMap(ChangeTag.init)
                records.append((name, nil, tag.map { Version($0) }))
            } else {
                let record = try RecordCopy(json: element)
                records.append((name, record, record.version))
            }
        }
        return records
    }

    /// The keys of a key-value answer, under `values` or `changes`.
    func keys(_ member: String) throws(UnexpectedAnswer) -> [(key: String, value: String?, version: Version)] {
        guard let elements = (try? JSONParser.parse(bytes))?[member]?.array else {
            throw UnexpectedAnswer("no \(member)")
        }
        var keys: [(key: String, value: String?, version: Version)] = []
        for element in elements {
            guard let key = element["key"]?.string, let tag = element["version"]?.string.flatMap(ChangeTag.init) else {
                throw UnexpectedAnswer("no key: \(element)")
            }
            keys.append((key, element["value"]?["value"]?.string, Version(tag)))
        }
        return keys
    }
}
