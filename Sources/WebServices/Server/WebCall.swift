import Admission
import Directory
import HTTPTypes
import Hummingbird
import RecordModel
import Service

/// One HTTP request, as the routes look at it.
struct WebCall: Sendable {
    var request: Request
    var url: RequestURL
    /// The request's own, for logs.
    let id: UUIDv7
    /// The same as text, for answers.
    let uuid: String
    /// The client's, where it is known.
    var address: String?
    /// Tells where the client goes away; nil for requests of this process.
    var clientDisconnect: ClientDisconnect?
    /// What URLs in the answer begin with: the operator's choice, else where the client says that it finds this node.
    let baseURL: String
    /// What the log of requests is to say of it.
    let note: RequestNote

    /// A request that came over a connection, with a new name.
    /// - Parameter origin: what URLs in the answer begin with; nil: what the request's `Host` says.
    init(_ request: Request, _ edge: EdgeContext, origin: String? = nil, in service: RecordService) {
        self.request = request
        baseURL = origin ?? Self.origin(of: request)
        url = RequestURL(target: request.head.path ?? "/")
        id = service.newID()
        uuid = id.text
        address = edge.remoteAddress
        clientDisconnect = edge.clientDisconnect
        note = RequestNote(isOn: service.requests.isOn || service.tracer != nil)
    }

    // All are valid header names, so the optionals are never nil.
    static let idempotencyKey = HTTPField.Name("Idempotency-Key")!
    private static let lastEventIDHeader = HTTPField.Name("Last-Event-ID")!
    private static let actAs = HTTPField.Name("X-Zonekeeper-Act-As")!
    private static let keyID = HTTPField.Name(RequestSignature.keyIDHeader)!
    private static let signedDate = HTTPField.Name(RequestSignature.dateHeader)!
    private static let signature = HTTPField.Name(RequestSignature.signatureHeader)!

    /// Method and path, without the query, which has secrets.
    var description: String {
        "\(request.method.rawValue) /\(url.segments.map { String($0.prefix(80)) }.prefix(9).joined(separator: "/"))"
    }

    var credentials: Credentials {
        Credentials(
            apiToken: url["ckAPIToken"], webAuthToken: url["ckWebAuthToken"] ?? url["ckSession"],
            origin: request.headers[.origin])
    }

    /// What a server-to-server key adds; nil where there is none of it.
    /// - Throws: `AUTHENTICATION_FAILED` where a part of it is missing or malformed.
    func signature() throws(RequestFailure) -> RequestSignature? {
        return try relay(
            RequestSignature(
                keyID: request.headers[Self.keyID], date: request.headers[Self.signedDate],
                signature: request.headers[Self.signature]))
    }

    /// Whether an administrator's request names a time as a user.
    var namesUser: Bool { request.headers[Self.actAs]?.isEmpty == false }

    /// The time as a user that a request names; nil where it names none.
    /// - Parameter administrator: who sends it; nil where it is a client's.
    func acting(_ administrator: AdministratorAccess?) throws(RequestFailure) -> ActingCredential? {
        guard namesUser, let id = request.headers[Self.actAs] else { return nil }
        if let administrator { return ActingCredential(id: id, access: administrator) }
        throw .badRequest("X-Zonekeeper-Act-As goes with an administrator's request, and with no other credential")
    }

    /// Holds a request for data against what the administrator who sends it may do. What one who acts as a user may do
    /// is the user's matter, and judged with the request.
    /// - Parameters:
    ///   - administrator: nil where it is a client's.
    ///   - notes: get who the administrator is, also where they may not do this.
    func require(
        _ administrator: AdministratorAccess?, _ route: DataRoute, now: Int64, _ notes: inout RequestNotes
    ) throws(RequestFailure) {
        notes.administrator = administrator?.actor
        guard let administrator, !namesUser else { return }
        guard !route.target.needsUser else {
            throw .accessDenied(
                "the administrator may use public data, but no private data and no preferences, other than as a user "
                    + "(`zonekeeper act-as`)")
        }
        try administrator.require(
            AdministratorNeed(route.leastRole, .container), container: route.target.container,
            environment: route.target.environment, now: now)
    }

    /// What follows `Authorization: Bearer`.
    var bearerToken: Substring? {
        guard let header = request.headers[.authorization], header.hasPrefix("Bearer ") else { return nil }
        return header.dropFirst("Bearer ".count)
    }

    /// The token of the last event that a browser had before it comes again; nil where there is none.
    var lastEventID: String? { request.headers[Self.lastEventIDHeader].flatMap { $0.isEmpty ? nil : $0 } }

    /// The device that asks, as it names itself in the parameter `clientId`; nil where it does not.
    /// - Throws: `BAD_REQUEST` for a name that is too long.
    func clientID() throws(RequestFailure) -> String? {
        guard let name = url["clientId"], !name.isEmpty else { return nil }
        guard name.utf8.count <= Limits.nameLengthMax else {
            throw .badRequest("clientId: at most \(Limits.nameLengthMax) bytes are expected")
        }
        return name
    }

    /// Whether a copy of the request would do something again.
    var mayChangeData: Bool { url.segments.last == "modify" || url.segments.last == "set" }

    /// Whether the method changes nothing.
    var isSafe: Bool { request.method == .get || request.method == .head }

    /// Where browsers find this node, as they wrote it.
    var origin: String { Self.origin(of: request) }

    private static func origin(of request: Request) -> String { "https://\(request.head.authority ?? "localhost")" }

    /// Who asks, for the audit log.
    func origin(of actor: String, now: Int64) -> AuditOrigin {
        AuditOrigin(actor: actor, requestID: uuid, address: address ?? "", time: now)
    }
}

/// The parts of a request's URL: decoded path segments and query parameters.
struct RequestURL: Sendable {
    var segments: [String]
    private var parameters: [(name: String, value: String)]

    /// - Parameter target: the request target as it came, such as `/database/1/x?y=z`.
    init(target: String) {
        let parts = target.utf8.split(separator: UInt8(ascii: "?"), maxSplits: 1, omittingEmptySubsequences: false)
        segments = parts[0].split(separator: UInt8(ascii: "/")).map { Self.decode($0) }
        parameters =
            parts.count < 2
            ? []
            : parts[1].split(separator: UInt8(ascii: "&")).map { pair in
                let sides = pair.split(separator: UInt8(ascii: "="), maxSplits: 1, omittingEmptySubsequences: false)
                return (Self.decode(sides[0]), sides.count < 2 ? "" : Self.decode(sides[1]))
            }
    }

    /// The first parameter of that name.
    subscript(parameter: String) -> String? { parameters.first { $0.name == parameter }?.value }

    /// Decodes `%XX`, and `+` where it means a space; what is not well-formed stays as it is.
    static func decode(_ text: some Collection<UInt8>, plusIsSpace: Bool = false) -> String {
        guard plusIsSpace || text.contains(UInt8(ascii: "%")) else { return String(decoding: text, as: UTF8.self) }
        let source = Array(text)
        var bytes: [UInt8] = []
        var position = 0
        while position < source.count {
            let byte = source[position]
            if byte == UInt8(ascii: "%"), position + 2 < source.count, let high = hexDigit(source[position + 1]),
                let low = hexDigit(source[position + 2])
            {
                bytes.append(high << 4 | low)
                position += 3
            } else {
                bytes.append(plusIsSpace && byte == UInt8(ascii: "+") ? UInt8(ascii: " ") : byte)
                position += 1
            }
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    private static func hexDigit(_ byte: UInt8) -> UInt8? {
        Character(Unicode.Scalar(byte)).hexDigitValue.map { UInt8($0) }
    }
}
