import RecordModel

/// The parts of a request's URL: decoded path segments and query parameters.
struct RequestURL: Sendable {
    var segments: [String]
    private var parameters: [(name: String, value: String)]

    /// - Parameter target: the request target as it came, such as `/database/1/x?y=z`.
    init(target: String) {
        let parts = target.split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
        segments = (parts.first ?? "").split(separator: "/").map { Self.decode($0) }
        parameters =
            parts.count < 2
            ? []
            : parts[1].split(separator: "&").map { pair in
                let sides = pair.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
                return (Self.decode(sides[0]), sides.count < 2 ? "" : Self.decode(sides[1]))
            }
    }

    /// The first parameter of that name.
    subscript(parameter: String) -> String? { parameters.first { $0.name == parameter }?.value }

    /// Decodes `%XX`; what is not well-formed stays as it is.
    private static func decode(_ text: Substring) -> String {
        guard text.utf8.contains(UInt8(ascii: "%")) else { return String(text) }
        var bytes: [UInt8] = []
        let source = Array(text.utf8)
        var position = 0
        while position < source.count {
            if source[position] == UInt8(ascii: "%"), position + 2 < source.count,
                let value = UInt8(String(decoding: source[(position + 1)...(position + 2)], as: UTF8.self), radix: 16)
            {
                bytes.append(value)
                position += 3
            } else {
                bytes.append(source[position])
                position += 1
            }
        }
        return String(decoding: bytes, as: UTF8.self)
    }
}
