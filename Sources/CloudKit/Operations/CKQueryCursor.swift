public import Foundation
import RecordModel

/// A place in the results of a query: `CKQueryOperation.Cursor`.
///
/// The class stands at the top level under the name it has in Objective-C, because Foundation on Linux archives no
/// nested classes. Immutable and opaque; equal when both name the same place of the same query.
public final class CKQueryCursor: NSObject, NSSecureCoding, NSCopying, Sendable {
    let call: QueryCall

    init(_ call: QueryCall) { self.call = call }

    public override func isEqual(_ object: Any?) -> Bool { (object as? CKQueryCursor)?.call == call }
    public override var hash: Int { call.hashValue }
    public override var description: String { "<CKQueryCursor>" }

    /// Itself: it cannot change.
    public func copy(with zone: NSZone? = nil) -> Any { self }

    public static var supportsSecureCoding: Bool { true }

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
