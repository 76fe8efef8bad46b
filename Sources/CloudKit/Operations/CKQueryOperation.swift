public import Foundation
import RecordModel

/// Finds records by a query, page by page.
open class CKQueryOperation: CKDatabaseOperation, @unchecked Sendable {
    /// A place in the results of a query.
    public typealias Cursor = CKQueryCursor

    /// As many records as the server gives at once.
    public static let maximumResults: Int = 0

    /// What to look for.
    @CKGuarded public var query: CKQuery? = nil
    /// Where to go on, instead of a query.
    @CKGuarded public var cursor: CKQueryOperation.Cursor? = nil
    /// The zone to look in; nil for every zone of the private database.
    @CKGuarded public var zoneID: CKRecordZone.ID? = nil
    /// How many records to fetch at most.
    @CKGuarded public var resultsLimit: Int = CKQueryOperation.maximumResults
    /// The fields to fetch; nil for all.
    @CKGuarded public var desiredKeys: [CKRecord.FieldKey]? = nil
    /// Called for each record, while the operation runs.
    @preconcurrency @CKGuarded
    public var recordMatchedBlock: (@Sendable (CKRecord.ID, Result<CKRecord, any Error>) -> Void)? = nil
    /// Called once, at the end, with a cursor where there is more.
    @preconcurrency @CKGuarded
    public var queryResultBlock: (@Sendable (Result<CKQueryOperation.Cursor?, any Error>) -> Void)? = nil
    /// Called for each record; the older form of `recordMatchedBlock`.
    @preconcurrency @CKGuarded public var recordFetchedBlock: (@Sendable (CKRecord) -> Void)? = nil
    /// Called once, at the end; the older form of `queryResultBlock`.
    @preconcurrency @CKGuarded
    public var queryCompletionBlock: (@Sendable (CKQueryOperation.Cursor?, (any Error)?) -> Void)? = nil

    /// An operation with nothing to do yet.
    public override init() { super.init() }

    /// An operation that looks for the records of a query.
    public convenience init(query: CKQuery) {
        self.init()
        self.query = query
    }

    /// An operation that goes on where another one ended.
    public convenience init(cursor: CKQueryOperation.Cursor) {
        self.init()
        self.cursor = cursor
    }

    override func execute() async {
        let work = await outcome { () async throws(CKError) -> CKQueryOperation.Cursor? in
            let service = service
            var next: QueryCall?
            if let call = try call(service) {
                next = try await service.query(call, desiredKeys: desiredKeys, limit: resultsLimit) { results in
                    await Callbacks.run { [self] in for (id, result) in results { tell(id, result) } }
                }
            }
            return next.map { CKQueryCursor($0) }
        }
        let result = ending(of: work)
        await Callbacks.run { [self] in
            queryResultBlock?(result)
            queryCompletionBlock?((try? result.get()) ?? nil, result.failure)
        }
    }

    private func call(_ service: DatabaseService) throws(CKError) -> QueryCall? {
        try checkCancellation()
        if let cursor { return cursor.call }
        guard let query else {
            throw CKError(.invalidArguments, reason: "a CKQueryOperation needs a query or a cursor")
        }
        return try service.call(query, in: zoneID)
    }

    private func tell(_ id: CKRecord.ID, _ result: Result<CKRecord, any Error>) {
        recordMatchedBlock?(id, result)
        if case .success(let record) = result { recordFetchedBlock?(record) }
    }
}

/// A place in the results of a query: `CKQueryOperation.Cursor`.
///
/// The class stands at the top level under the name it has in Objective-C, because Foundation on Linux archives no
/// nested classes. Immutable and opaque; equal when both name the same place of the same query.
public final class CKQueryCursor: NSObject, NSSecureCoding, NSCopying, Sendable {
    let call: QueryCall

    init(_ call: QueryCall) { self.call = call }

    /// Whether the other object is equal to this one.
    public override func isEqual(_ object: Any?) -> Bool { (object as? CKQueryCursor)?.call == call }
    /// Equal for equal objects.
    public override var hash: Int { call.hashValue }
    /// What was wrong and what to do about it.
    public override var description: String { "<CKQueryCursor>" }

    /// Itself: it cannot change.
    public func copy(with zone: NSZone? = nil) -> Any { self }

    /// Always true.
    public static var supportsSecureCoding: Bool { true }
    /// The class's name at Apple's.
    public override class func classFallbacksForKeyedArchiver() -> [String] { ArchiveNames.fallbacks(self) }

    /// Archives the object.
    public func encode(with coder: NSCoder) {
        var writer = JSONWriter()
        writer.object { writer in
            writer.member("query", call.query)
            if let marker = call.marker { writer.member("marker", marker) }
            if let zone = call.zone {
                writer.key("zone")
                writer.zoneID(of: zone)
            }
        }
        coder.encode(Data(writer.bytes) as NSData, forKey: "Call")
    }

    /// Nil where the archive holds no cursor.
    public convenience init?(coder: NSCoder) {
        guard let data = coder.decodeObject(of: NSData.self, forKey: "Call"),
            let json = try? JSONParser.parse(Array(data as Data)), let query = json["query"]
        else { return nil }
        self.init(
            QueryCall(query: query, zone: json["zone"].flatMap(RecordReader.zoneID), marker: json["marker"]?.string))
    }
}
