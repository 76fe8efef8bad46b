import RecordModel

/// The way to a server.
enum Door: String, CaseIterable, Sendable {
    /// One node in this process, without HTTP.
    case memory
    /// Three processes, over HTTPS; each request goes to the next node.
    case cluster

    /// The cases of a rule: all of them in memory, and the first through the cluster.
    static func cases<Value: Sendable>(_ values: [Value]) -> [(Door, Value)] {
        values.map { (.memory, $0) } + values.prefix(1).map { (.cluster, $0) }
    }
}

/// A server under test.
protocol ConformanceService: Sendable {
    var administratorToken: String { get }
    func send(_ call: Call) async throws -> Answer
}

/// A request as a client would send it.
struct Call: Sendable {
    var method: String
    var path: String
    /// Name and value, as they stand in the URL.
    var query: [(String, String)] = []
    var headers: [(String, String)] = []
    var body: [UInt8] = []
    /// Makes the headers that each attempt needs anew: a signature is good for one.
    var signing: (@Sendable (Call) throws -> [(String, String)])?

    init(_ method: String, _ path: String) {
        self.method = method
        self.path = path
    }

    /// The headers of an attempt that is made now.
    func attemptHeaders() throws -> [(String, String)] { headers + (try signing?(self) ?? []) }

    /// Path and query.
    var target: String {
        query.isEmpty ? path : path + "?" + query.map { "\($0)=\($1)" }.joined(separator: "&")
    }
}

/// What came back.
struct Answer: Sendable, CustomStringConvertible {
    var status: Int
    var headers: [(String, String)]
    var body: [UInt8]
    /// Null where the body is not JSON.
    var json: JSONValue

    init(status: Int, headers: [(String, String)], body: [UInt8]) {
        self.status = status
        self.headers = headers
        self.body = body
        json = (try? JSONParser.parse(body)) ?? .null
    }

    var text: String { String(decoding: body, as: UTF8.self) }

    var description: String { "HTTP \(status) \(text.prefix(2_000))" }

    func header(_ name: String) -> String? { headers.first { $0.0.lowercased() == name.lowercased() }?.1 }
}
