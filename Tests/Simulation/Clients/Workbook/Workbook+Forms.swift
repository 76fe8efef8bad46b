import RecordModel

// Requests as clients send them.
extension Workbook {
    private static func form(_ write: (inout JSONWriter) -> Void) -> [UInt8] {
        var writer = JSONWriter()
        writer.object(write)
        return writer.bytes
    }

    private static func zoneID(_ zone: Zone, _ writer: inout JSONWriter) {
        writer.key("zoneID")
        writer.object { $0.member("zoneName", zone.key.name) }
    }

    static func strings(_ key: String, _ values: [String]?, _ writer: inout JSONWriter) {
        guard let values else { return }
        writer.key(key)
        writer.array { writer in for value in values { writer.string(value) } }
    }

    func body(_ operations: [Operation], in zone: Zone, isAtomic: Bool) -> [UInt8] {
        Self.form { writer in
            writer.key("operations")
            writer.array { writer in for operation in operations { Self.write(operation, &writer) } }
            Self.zoneID(zone, &writer)
            writer.member("atomic", isAtomic)
        }
    }

    private static func write(_ operation: Operation, _ writer: inout JSONWriter) {
        writer.object { writer in
            writer.member("operationType", operation.kind.rawValue)
            writer.key("record")
            writer.object { writer in
                writer.member("recordName", operation.name)
                if let type = operation.type { writer.member("recordType", type) }
                if let tag = operation.tag { writer.member("recordChangeTag", tag.description) }
                if operation.kind.isDelete { return }
                writer.key("fields")
                writer.object { writer in
                    for field in operation.fields where field.name != parent {
                        writer.key(field.name)
                        writer.object { writer in
                            writer.key("value")
                            if let value = field.value {
                                writer.value(value, numbersAsStrings: false)
                            } else {
                                writer.null()
                            }
                        }
                    }
                }
                guard let field = operation.fields.first(where: { $0.name == parent }) else { return }
                writer.key("parent")
                guard let target = field.value?.references.first else { return writer.null() }
                writer.object { $0.member("recordName", target.recordName) }
            }
        }
    }

    /// - Parameter keys: the fields to show, for each record by itself; nil for all.
    func lookup(_ names: [(name: String, keys: [String]?)], in zone: Zone, asStrings: Bool) -> [UInt8] {
        Self.form { writer in
            writer.key("records")
            writer.array { writer in
                for (name, keys) in names {
                    writer.object { writer in
                        writer.member("recordName", name)
                        Self.strings("desiredKeys", keys, &writer)
                    }
                }
            }
            Self.zoneID(zone, &writer)
            writer.member("numbersAsStrings", asStrings)
        }
    }

    func versions(of name: String, in zone: Zone, before: ChangeTag?, limit: Int) -> [UInt8] {
        Self.form { writer in
            writer.member("recordName", name)
            Self.zoneID(zone, &writer)
            if let before { writer.member("before", before.description) }
            writer.key("resultsLimit")
            writer.integer(Int64(limit))
        }
    }

    /// - Parameter zone: nil for all of the database.
    func query(
        _ query: Query, in zone: Zone?, limit: Int, marker: String?, keys: [String]?, asStrings: Bool
    ) -> [UInt8] {
        Self.form { writer in
            writer.key("query")
            writer.object { writer in query.write(type, to: &writer) }
            if let zone { Self.zoneID(zone, &writer) } else { writer.member("zoneWide", true) }
            writer.key("resultsLimit")
            writer.integer(Int64(limit))
            if let marker { writer.member("continuationMarker", marker) }
            Self.strings("desiredKeys", keys, &writer)
            writer.member("numbersAsStrings", asStrings)
        }
    }

    func changes(
        of zone: Zone, after token: String?, limit: Int, isReverse: Bool, keys: [String]?, types: [String]?
    ) -> [UInt8] {
        Self.form { writer in
            Self.zoneID(zone, &writer)
            writer.key("resultsLimit")
            writer.integer(Int64(limit))
            writer.member("reverse", isReverse)
            if let token { writer.member("syncToken", token) }
            Self.strings("desiredKeys", keys, &writer)
            Self.strings("desiredRecordTypes", types, &writer)
        }
    }

    func modification(of zones: [(zone: Zone, isCreation: Bool)]) -> [UInt8] {
        Self.form { writer in
            writer.key("operations")
            writer.array { writer in
                for (zone, isCreation) in zones {
                    writer.object { writer in
                        writer.member("operationType", isCreation ? "create" : "delete")
                        writer.key("zone")
                        writer.object { Self.zoneID(zone, &$0) }
                    }
                }
            }
        }
    }
}
