import RecordModel
import Testing

/// Why a request is refused as malformed; nil, with an issue, where it is not.
func reason<Value>(_ body: () throws -> Value) -> String? {
    do {
        let value = try body()
        Issue.record("taken as \(value)")
        return nil
    } catch {
        #expect((error as? ServiceError)?.code == .badRequest)
        return (error as? ServiceError)?.reason
    }
}

/// What is written as JSON.
func text(_ body: (inout JSONWriter) -> Void) -> String {
    var writer = JSONWriter()
    body(&writer)
    return String(decoding: writer.bytes, as: UTF8.self)
}
