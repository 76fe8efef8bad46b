import RecordModel
import Testing

// Assets.
extension Space {
    /// The URLs that the server gives for files of fields.
    func uploadURLs(_ tokens: [JSONValue]) async throws -> [String] {
        let zone: JSONValue = zone == nil ? [:] : ["zoneID": zoneID]
        let answer = try await call("assets/upload", JSONValue.object([.init("tokens", .array(tokens))]).with(zone))
        return try answer.items("tokens").map { try #require($0["url"]?.string, "\(answer)") }
    }

    /// A URL for the file of one field.
    func uploadURL(_ field: String = "file", type: String = "Item", more: JSONValue = [:]) async throws -> String {
        let token = JSONValue.object([.init("recordType", .string(type)), .init("fieldName", .string(field))])
        return try await uploadURLs([token.with(more)])[0]
    }

    /// A request to a URL that an answer had. It has no credentials.
    func request(_ method: String, url: String, _ body: [UInt8] = [], headers: [(String, String)] = []) -> Call {
        let path = url.firstRange(of: "/assets/").map { String(url[$0.lowerBound...]) } ?? url
        var call = Call(method, path)
        call.body = body
        call.headers = headers
        return call
    }

    func send(
        _ method: String, url: String, _ body: [UInt8] = [], headers: [(String, String)] = []
    ) async throws -> Answer {
        try await send(request(method, url: url, body, headers: headers))
    }

    /// Uploads a file, which must succeed.
    /// - Returns: the dictionary to save.
    func upload(
        _ bytes: [UInt8], _ field: String = "file", type: String = "Item",
        sourceLocation: SourceLocation = #_sourceLocation
    ) async throws -> JSONValue {
        let answer = try await send("POST", url: try await uploadURL(field, type: type), bytes)
        return try #require(answer.json["singleFile"], "\(answer)", sourceLocation: sourceLocation)
    }

    /// Saves a record with a new file.
    @discardableResult
    func save(_ name: String, file bytes: [UInt8], type: String = "Item") async throws -> JSONValue {
        try await save(name, ["file": ["value": try await upload(bytes, type: type)]], type: type)
    }

    /// Tries to save a record with a dictionary in its field `file`.
    func saveItem(_ name: String, file: JSONValue, type: String = "Item") async throws -> JSONValue {
        try await modify(Self.operation("forceReplace", name, ["file": ["value": file]], type: type))
    }

    /// Where the file of a record is to be had.
    func downloadURL(
        _ name: String, _ field: String = "file", sourceLocation: SourceLocation = #_sourceLocation
    ) async throws -> String {
        let record = try await lookup(name)
        return try #require(
            record.field(field)?["downloadURL"]?.string, "\(record.text)", sourceLocation: sourceLocation)
    }

    /// The bytes of a record's file.
    func download(_ name: String, _ field: String = "file") async throws -> [UInt8] {
        let answer = try await send("GET", url: try await downloadURL(name, field))
        try #require(answer.status == 200, "\(answer)")
        return answer.body
    }
}
