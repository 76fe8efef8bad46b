import RecordModel

/// How the saves and deletions of one call are spread over requests: a value that knows no network.
///
/// A request is for one zone, holds at most 200 operations and fits the server's body. What must happen wholly or not
/// at all goes in one request or not at all.
struct BatchPlan: Sendable {
    /// One operation, rendered as records/modify takes it.
    struct Operation: Sendable {
        var id: CKRecord.ID
        var kind: Kind
        var json: [UInt8]
    }

    /// What an operation does, with the place of its record among those to save.
    enum Kind: Sendable, Equatable {
        case save(Int)
        case delete
    }

    /// What goes in one request.
    struct Request: Sendable {
        var zone: CKRecordZone.ID
        var isAtomic: Bool
        var operations: [Operation]

        /// The body of records/modify.
        var body: [UInt8] {
            var writer = JSONWriter(capacity: operations.reduce(256) { $0 + $1.json.count + 1 })
            writer.object { writer in
                writer.key("zoneID")
                writer.zoneID(of: zone)
                writer.member("atomic", isAtomic)
                writer.key("operations")
                writer.array { writer in for operation in operations { writer.raw(operation.json) } }
            }
            return writer.bytes
        }
    }

    /// In the order in which they are sent.
    private(set) var requests: [Request] = []

    /// What CloudKit takes in one call.
    static let itemsMax = 400
    /// What fits a body beside the bytes around the operations.
    static let operationsBytesMax = Limits.requestBodyBytesMax - 4_096

    /// - Parameters:
    ///   - operations: in the order of the call; zones may be mixed.
    ///   - isAtomic: whether each custom zone's part happens wholly or not at all.
    ///   - isPublic: whether it is the public database, which has no such zones.
    /// - Throws: `limitExceeded` where it is too much, `invalidArguments` where a record occurs twice.
    init(_ operations: [Operation], isAtomic: Bool, isPublic: Bool) throws(CKError) {
        guard operations.count <= Self.itemsMax else {
            throw CKError(
                .limitExceeded,
                reason:
                    "\(operations.count) records to save and delete, at most \(Self.itemsMax) in one call: send them in "
                    + "several")
        }
        if operations.count == 1 {
            let zone = operations[0].id.zoneID
            requests = [
                Request(zone: zone, isAtomic: Self.isWhole(isAtomic, zone, isPublic: isPublic), operations: operations)
            ]
            return
        }
        var zones: [CKRecordZone.ID] = []
        var byZone: [CKRecordZone.ID: [Operation]] = [:]
        var known: Set<CKRecord.ID> = []
        for operation in operations {
            guard known.insert(operation.id).inserted else {
                throw CKError(
                    .invalidArguments,
                    reason: "the record '\(operation.id.recordName)' is to be saved or deleted twice in one call")
            }
            let zone = operation.id.zoneID
            if byZone[zone] == nil { zones.append(zone) }
            byZone[zone, default: []].append(operation)
        }
        for zone in zones {
            let isWhole = Self.isWhole(isAtomic, zone, isPublic: isPublic)
            let parts = Self.parts(byZone[zone] ?? [])
            if isWhole, parts.count > 1 { throw Self.tooMuch(byZone[zone] ?? [], in: zone) }
            requests += parts.map { Request(zone: zone, isAtomic: isWhole, operations: $0) }
        }
    }

    /// Only custom zones have what is done wholly or not at all.
    private static func isWhole(_ isAtomic: Bool, _ zone: CKRecordZone.ID, isPublic: Bool) -> Bool {
        isAtomic && !isPublic && zone.zoneName != CKRecordZone.ID.defaultZoneName
    }

    /// Consecutive operations, as many together as a request takes. One that is too large for any goes alone, and the
    /// server says so.
    private static func parts(_ operations: [Operation]) -> [[Operation]] {
        var parts: [[Operation]] = []
        var bytes = 0
        for operation in operations {
            let isFull =
                parts.last.map {
                    $0.count == Limits.operationsMax || bytes + operation.json.count + 1 > operationsBytesMax
                } ?? true
            if isFull {
                parts.append([])
                bytes = 0
            }
            parts[parts.count - 1].append(operation)
            bytes += operation.json.count + 1
        }
        return parts
    }

    private static func tooMuch(_ operations: [Operation], in zone: CKRecordZone.ID) -> CKError {
        let bytes = operations.reduce(0) { $0 + $1.json.count }
        let what =
            operations.count > Limits.operationsMax
            ? "\(operations.count) records, at most \(Limits.operationsMax)"
            : "\(bytes) bytes of records, at most \(operationsBytesMax)"
        return CKError(
            .limitExceeded,
            reason:
                "\(what) can be saved and deleted atomically in the zone '\(zone.zoneName)': send fewer at a time, or "
                + "not atomically")
    }
}
