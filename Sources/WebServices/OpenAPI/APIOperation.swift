import RecordModel

/// One method of one path.
struct APIOperation: Sendable {
    enum Method: String, Sendable { case get, post, patch, delete }

    /// Who may call it.
    enum Access: Sendable {
        case open
        /// An API token and, for what needs a user, a session; for public data also a server's key, or the administrator.
        case clients
        case administrator
    }

    var method: Method
    /// With parameters in braces.
    var path: String
    var tag: String
    var summary: String
    var description = ""
    var isDeprecated = false
    var access = Access.open
    var parameters: [APIParameter] = []
    var request: APIContent?
    var answers: [APIAnswer] = []

    init(_ method: Method, _ path: String, tag: String, _ summary: String) {
        self.method = method
        self.path = path
        self.tag = tag
        self.summary = summary
    }
}

/// A parameter of a path, a query or a header.
struct APIParameter: Sendable {
    enum Place: String, Sendable { case path, query, header }

    var name: String
    var place: Place
    var shape: Shape
    var description: String
    var isRequired = false

    init(_ name: String, _ place: Place, _ shape: Shape = .text, _ description: String, isRequired: Bool = false) {
        self.name = name
        self.place = place
        self.shape = shape
        self.description = description
        self.isRequired = isRequired || place == .path
    }
}

/// A body: its shape, and what it is called.
struct APIContent: Sendable {
    var types: [String]
    var shape: Shape
    var isRequired = true

    /// JSON, whatever the client says it is: bodies are read as JSON under any content type.
    static func json(_ shape: Shape, isRequired: Bool = true) -> APIContent {
        APIContent(types: ["application/json", "text/plain"], shape: shape, isRequired: isRequired)
    }
}

/// What may come back.
struct APIAnswer: Sendable {
    var status: Int
    var description: String
    var type = "application/json"
    var shape: Shape
    /// Other types that the answer may have instead, as text.
    var otherTypes: [String] = []

    init(
        _ status: Int, _ description: String, _ shape: Shape, type: String = "application/json", other: [String] = []
    ) {
        self.status = status
        self.description = description
        self.shape = shape
        self.type = type
        otherTypes = other
    }

    /// The same, or text of another type.
    func or(_ type: String) -> APIAnswer {
        var answer = self
        answer.otherTypes.append(type)
        return answer
    }

    /// Requests that fail as a whole.
    static func failures(_ statuses: [Int]) -> [APIAnswer] {
        statuses.map { status in
            let codes = ErrorCode.allCases.filter { $0.httpStatus == status }.map(\.rawValue)
            let words: String =
                switch status {
                case 405: "BAD_REQUEST: the action is called with another method"
                case 413:
                    "BAD_REQUEST: the request is too large; QUOTA_EXCEEDED: there is no room"
                case 501: "BAD_REQUEST: CloudKit has this, and this server does not have it yet"
                default: codes.joined(separator: ", ")
                }
            return APIAnswer(status, words, .reference("RequestError"))
        }
    }
}

extension JSONWriter {
    mutating func operation(_ operation: APIOperation) {
        object { writer in
            writer.key("tags")
            writer.array { $0.string(operation.tag) }
            writer.member("summary", operation.summary)
            if !operation.description.isEmpty { writer.member("description", operation.description) }
            writer.member("operationId", operation.id)
            if operation.isDeprecated { writer.member("deprecated", true) }
            writer.security(operation.access)
            if !operation.parameters.isEmpty {
                writer.key("parameters")
                writer.array { writer in for parameter in operation.parameters { writer.parameter(parameter) } }
            }
            if let request = operation.request {
                writer.key("requestBody")
                writer.object { writer in
                    writer.member("required", request.isRequired)
                    writer.content(request.types, request.shape)
                }
            }
            writer.key("responses")
            writer.object { writer in
                for answer in operation.answers.sorted(by: { $0.status < $1.status }) {
                    writer.answer(answer, to: operation.access)
                }
            }
        }
    }

    private mutating func security(_ access: APIOperation.Access) {
        let choices: [[String]] =
            switch access {
            case .open: []
            case .clients:
                [
                    ["apiToken", "webAuthToken"], ["apiToken"], ["serverKeyID", "serverKeyDate", "serverKeySignature"],
                    ["administrator"],
                ]
            case .administrator: [["administrator"]]
            }
        key("security")
        array { writer in
            for schemes in choices {
                writer.object { writer in
                    for scheme in schemes {
                        writer.key(scheme)
                        writer.array { _ in }
                    }
                }
            }
        }
    }

    private mutating func parameter(_ parameter: APIParameter) {
        object { writer in
            writer.member("name", parameter.name)
            writer.member("in", parameter.place.rawValue)
            writer.member("description", parameter.description)
            writer.member("required", parameter.isRequired)
            writer.key("schema")
            writer.shape(parameter.shape)
        }
    }

    private mutating func content(_ types: [String], _ shape: Shape, texts: [String] = []) {
        key("content")
        object { writer in
            for (type, shape) in types.map({ ($0, shape) }) + texts.map({ ($0, Shape.text) }) {
                writer.key(type)
                writer.object { writer in
                    writer.key("schema")
                    writer.shape(shape)
                }
            }
        }
    }

    private mutating func answer(_ answer: APIAnswer, to access: APIOperation.Access) {
        key(String(answer.status))
        object { writer in
            writer.member("description", answer.description)
            writer.key("headers")
            writer.object { writer in
                for name in answer.headers(to: access) {
                    writer.key(name)
                    writer.member("$ref", to: "#/components/headers/\(name)")
                }
            }
            writer.content([answer.type], answer.shape, texts: answer.otherTypes)
        }
    }

    /// An object with one member.
    private mutating func member(_ key: String, to value: String) { object { $0.member(key, value) } }
}

extension APIAnswer {
    /// The headers that an answer may have.
    fileprivate func headers(to access: APIOperation.Access) -> [String] {
        let retry = [413, 429, 503].contains(status) ? ["Retry-After"] : []
        let place = status == 303 ? ["Location"] : []
        guard case .clients = access else { return ["X-Apple-Request-UUID"] + retry + place }
        return ["X-Apple-Request-UUID"] + retry + ["RateLimit", "RateLimit-Policy", "X-Apple-CloudKit-Web-Auth-Token"]
    }
}

extension APIOperation {
    /// Such as `postRecordsModify`.
    fileprivate var id: String {
        let words = path.split { !$0.isLetter && !$0.isNumber }.filter {
            !["database", "admin", "1", "container", "environment"].contains($0)
        }
        // Pages and administration share some words.
        let isPage = path == "/sign-up"
        return method.rawValue + (isPage ? "Page" : "")
            + words.map { $0.prefix(1).uppercased() + $0.dropFirst() }.joined()
    }
}
