import HTTPTypes
import NIOHTTP1

/// Which requests are taken on at all, by their heads. Pure.
struct RequestRules: Sendable {
    var limits: EdgeLimits

    /// What the parser may gather before it gives up; more than the rules allow, so that they can tell what was too
    /// long.
    var parserBytesMax: Int { limits.headerBytesMax + 4 * limits.targetBytesMax }

    /// Why a request is refused; nil if it is not.
    func refusal(of request: RequestMeasure) -> EdgeRefusal? {
        if request.targetBytes > limits.targetBytesMax {
            return EdgeRefusal(
                414, "the request's target has \(request.targetBytes) bytes; \(limits.targetBytesMax) are allowed")
        }
        if request.headerBytes > limits.headerBytesMax {
            return EdgeRefusal(
                431,
                "the request's header fields have \(request.headerBytes) bytes; \(limits.headerBytesMax) are allowed")
        }
        if request.headerFields > limits.headerFieldsMax {
            return EdgeRefusal(
                431, "the request has \(request.headerFields) header fields; \(limits.headerFieldsMax) are allowed")
        }
        if let hosts = request.hosts, hosts != 1 {
            return EdgeRefusal(400, "the request has \(hosts) Host header fields; one is needed")
        }
        if request.method == "CONNECT" || request.method == "TRACE" {
            return .method(request.method)
        }
        return nil
    }

    /// What is answered to bytes that are no request.
    func refusal(of error: HTTPParserError) -> EdgeRefusal {
        switch error {
        case .headerOverflow:
            EdgeRefusal(
                431,
                "the request's head is too large: \(limits.headerFieldsMax) header fields, \(limits.headerBytesMax) "
                    + "bytes of them, and a target of \(limits.targetBytesMax) bytes are allowed")
        case .invalidVersion:
            EdgeRefusal(400, "this is neither HTTP 1.1 nor 1.0, which this service speaks")
        default:
            EdgeRefusal(400, "this is not a well-formed HTTP request (\(error))")
        }
    }
}

/// What of a request's head the rules look at.
struct RequestMeasure: Sendable {
    var method: String
    var targetBytes: Int
    var headerBytes = 0
    var headerFields = 0
    /// How many Host fields it has, where it must have one.
    var hosts: Int?

    /// Of a request of HTTP/1.
    init(_ head: HTTPRequestHead) {
        method = head.method.rawValue
        targetBytes = head.uri.utf8.count
        var hosts = 0
        for (name, value) in head.headers {
            add(name, value)
            if name.utf8.count == 4, name.lowercased() == "host" { hosts += 1 }
        }
        if (head.version.major, head.version.minor) >= (1, 1) { self.hosts = hosts }
    }

    /// Of a request of HTTP/2, whose authority has a place of its own.
    init(_ request: HTTPRequest) {
        method = request.method.rawValue
        targetBytes = request.path?.utf8.count ?? 0
        for field in request.headerFields { add(field.name.rawName, field.value) }
    }

    /// Counts a field with its colon, its space and the line's end.
    private mutating func add(_ name: String, _ value: String) {
        headerBytes += name.utf8.count + value.utf8.count + 4
        headerFields += 1
    }
}
