import Wire

/// A request: its number on this connection, and what is asked.
struct RequestFrame: Hashable, WireCodable {
    /// What a request's frame has besides the payload, at most.
    static let overheadBytesMax = Frame.headerBytes + 24

    var id: UInt64
    var payload: [UInt8]

    init(id: UInt64, payload: [UInt8]) {
        self.id = id
        self.payload = payload
    }

    func encode(to writer: inout WireWriter) {
        writer.field(1, id)
        writer.field(2, payload)
    }

    init(from reader: inout WireReader) throws(WireError) {
        var id: UInt64?
        payload = []
        while let field = try reader.nextField() {
            switch field {
            case 1: id = try reader.unsigned()
            case 2: payload = try reader.array()
            default: try reader.skip()
            }
        }
        guard let id else { throw .missingField(1) }
        self.id = id
    }
}

/// The answer to the request of the same number.
struct ResponseFrame: Hashable, WireCodable {
    var id: UInt64
    var result: Result<[UInt8], PeerTransportError>

    init(id: UInt64, result: Result<[UInt8], PeerTransportError>) {
        self.id = id
        self.result = result
    }

    func encode(to writer: inout WireWriter) {
        writer.field(1, id)
        switch result {
        case .success(let payload): writer.field(2, payload)
        case .failure(.refused(let reason)): writer.field(3, reason)
        case .failure(.responseLost(let reason)): writer.field(4, reason)
        case .failure(.responseTooLarge(let bytes, let bytesMax)):
            // The reason as well, for nodes that know no other field of a lost response.
            writer.field(4, PeerTransportError.responseTooLarge(bytes: bytes, bytesMax: bytesMax).description)
            writer.field(5, UInt64(bytes))
            writer.field(6, UInt64(bytesMax))
        case .failure(let error): writer.field(error.isOutcomeUnknown ? 4 : 3, error.description)
        }
    }

    init(from reader: inout WireReader) throws(WireError) {
        var id: UInt64?
        var result: Result<[UInt8], PeerTransportError>?
        var (bytes, bytesMax): (Int?, Int) = (nil, 0)
        while let field = try reader.nextField() {
            switch field {
            case 1: id = try reader.unsigned()
            case 2: result = .success(try reader.array())
            case 3: result = .failure(.refused(try reader.string()))
            case 4: result = .failure(.responseLost(try reader.string()))
            case 5: bytes = Int(clamping: try reader.unsigned())
            case 6: bytesMax = Int(clamping: try reader.unsigned())
            default: try reader.skip()
            }
        }
        if let bytes { result = .failure(.responseTooLarge(bytes: bytes, bytesMax: bytesMax)) }
        guard let id else { throw .missingField(1) }
        guard let result else { throw .missingField(2) }
        self.id = id
        self.result = result
    }
}
