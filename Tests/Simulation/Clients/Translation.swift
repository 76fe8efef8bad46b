import Cluster
import HistoryChecks
import KeyValueStore
import RecordModel
import Service

// Between what the production code says and what the checkers judge.

extension Version {
    init(_ tag: ChangeTag) { self.init(tag.incarnation, tag.sequence) }

    var tag: ChangeTag { ChangeTag(incarnation: incarnation, sequence: sequence) }
}

extension [RecordWrite] {
    /// The request that clients send for it.
    /// - Parameter receipts: of the files that they name.
    func body(zone: String, isAtomic: Bool, receipts: [FileBook.Receipt] = []) -> [UInt8] {
        var writer = JSONWriter()
        writer.object { writer in
            writer.key("operations")
            writer.array { writer in for write in self { write.write(to: &writer, receipts) } }
            writer.key("zoneID")
            writer.object { $0.member("zoneName", zone) }
            writer.member("atomic", isAtomic)
        }
        return writer.bytes
    }
}

extension RecordWrite {
    fileprivate func write(to writer: inout JSONWriter, _ receipts: [FileBook.Receipt]) {
        let isDelete = kind == .delete || kind == .forceDelete
        writer.object { writer in
            writer.member("operationType", "\(kind)")
            writer.key("record")
            writer.object { writer in
                writer.member("recordName", name)
                if !isDelete { writer.member("recordType", Place.type) }
                if let version { writer.member("recordChangeTag", version.tag.description) }
                guard !isDelete else { return }
                writer.key("fields")
                writer.object { writer in
                    for (field, value) in fields.sorted(by: { $0.key < $1.key }) {
                        writer.key(field)
                        writer.object { writer in
                            writer.key("value")
                            let own = receipts.filter { $0.field == field }
                            if value != nil, field == Place.albumField {
                                writer.array { writer in for receipt in own { receipt.write(to: &writer) } }
                            } else if value != nil, let receipt = own.first {
                                receipt.write(to: &writer)
                            } else if let value {
                                writer.string(value)
                            } else {
                                writer.null()
                            }
                        }
                    }
                }
            }
        }
    }
}

extension WriteOutcome {
    /// - Parameter showsRecords: whether the records that clashed are those of the moment of judgement.
    init(
        _ outcome: RecordModification.Outcome, _ files: FileBook, showsRecords: Bool
    ) throws(UnexpectedAnswer) {
        switch outcome {
        case .saved(let record, _): self = .saved(Version(record.changeTag))
        case .deleted: self = .deleted
        case .failed(let error, let record):
            let copy = showsRecords ? record.map { RecordCopy($0, files) } : nil
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
    init(_ record: RecordModel.Record, _ files: FileBook) {
        var content: [String: String] = [:]
        for field in record.fields.all {
            switch field.value {
            case .string(let text): content[field.name] = text
            case .asset(let asset): content[field.name] = files.checksum(ofHash: asset.sha256)
            case .list(_, let members):
                content[field.name] = members.flatMap(\.assets).map { files.checksum(ofHash: $0.sha256) }
                    .joined(separator: "+")
            default: break
            }
        }
        self.init(content, Version(record.changeTag))
    }

    /// A record as a read shows it.
    init(json: JSONValue) throws(UnexpectedAnswer) {
        guard let tag = json["recordChangeTag"]?.string.flatMap(ChangeTag.init),
            case .object(let fields)? = json["fields"]
        else { throw UnexpectedAnswer("no record: \(json)") }
        var content: [String: String] = [:]
        for field in fields {
            let value = field.value["value"]
            let list = value?.array?.compactMap { $0["fileChecksum"]?.string }.joined(separator: "+")
            content[field.key] = value?.string ?? value?["fileChecksum"]?.string ?? list
        }
        self.init(content, Version(tag))
    }
}

extension ZoneModel.Outcome {
    init(
        _ result: RecordModification.Result, _ files: FileBook, showsRecords: Bool
    ) throws(UnexpectedAnswer) {
        var outcomes: [WriteOutcome] = []
        for item in result.items { outcomes.append(try WriteOutcome(item.outcome, files, showsRecords: showsRecords)) }
        self = result.isAtomicFailure ? .batchFailed(outcomes) : .items(outcomes)
    }
}

extension WebRequest {
    /// A request as a client sent it.
    init(sent body: [UInt8]) throws(RequestFailure) {
        do throws(ServiceError) { try self.init(body: body) } catch { throw RequestFailure(error) }
    }
}

/// An answer that the clients of a simulation should never get.
struct UnexpectedAnswer: Error, CustomStringConvertible {
    var description: String
    init(_ description: String) { self.description = description }
}

extension [UInt8] {
    /// The records of an answer, by name; nil for those that are not there, or were deleted.
    func recordList() throws(UnexpectedAnswer) -> [(name: String, record: RecordCopy?, version: Version?)] {
        guard let elements = (try? JSONParser.parse(self))?.array else { throw UnexpectedAnswer("no array") }
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
        guard let elements = (try? JSONParser.parse(self))?[member]?.array else {
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
