import NIOHTTP1

/// Which requests are taken on at all, by their heads. Pure.
struct RequestRules: Sendable {
    var limits: EdgeLimits

    /// What the parser may gather before it gives up; more than the rules allow, so that they can tell what was too
    /// long.
    var parserBytesMax: Int { limits.headerBytesMax + 4 * limits.targetBytesMax }

    /// Why a request is refused; nil if it is not.
    func refusal(of head: HTTPRequestHead) -> EdgeRefusal? {
        let targetBytes = head.uri.utf8.count
        if targetBytes > limits.targetBytesMax {
            return EdgeRefusal(
                414, "the request's target has \(targetBytes) bytes; \(limits.targetBytesMax) are allowed")
        }
        var headerBytes = 0
        var hostCount = 0
        for (name, value) in head.headers {
            // With the colon, the space and the line's end.
            headerBytes += name.utf8.count + value.utf8.count + 4
            if name.utf8.count == 4, name.lowercased() == "host" { hostCount += 1 }
        }
        if headerBytes > limits.headerBytesMax {
            return EdgeRefusal(
                431, "the request's header fields have \(headerBytes) bytes; \(limits.headerBytesMax) are allowed")
        }
        if (head.version.major, head.version.minor) >= (1, 1), hostCount != 1 {
            return EdgeRefusal(400, "the request has \(hostCount) Host header fields; one is needed")
        }
        if head.method == .CONNECT || head.method == .TRACE {
            return EdgeRefusal(405, "\(head.method.rawValue) is not a method of this service")
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
