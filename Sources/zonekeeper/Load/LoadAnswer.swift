/// Reads as much of an answer as a load needs, at the cost of a search through its bytes.
enum LoadAnswer {
    private static let code = BytePattern("\"serverErrorCode\":")
    private static let reason = BytePattern("\"reason\":")

    /// What answers without the proof are counted under.
    static let emptyAnswer = "(empty answer)"

    /// - Parameter proof: bytes that a right answer holds: one without them counts as an error, not as a fast success.
    static func judge(status: Int, body: UnsafeRawBufferPointer, proof: BytePattern?) -> LoadOutcome {
        let isFailure = code.firstMatch(in: body) != nil
        guard status == 200, !isFailure else {
            return .failed(status: status, code: string(after: code, in: body), reason: string(after: reason, in: body))
        }
        if let proof, proof.firstMatch(in: body) == nil {
            return .failed(status: status, code: emptyAnswer, reason: nil)
        }
        return .succeeded
    }

    /// The string after a key's first place, with its escapes as they are; our own server never writes it in another way.
    private static func string(after key: BytePattern, in bytes: UnsafeRawBufferPointer) -> String? {
        guard let place = key.firstMatch(in: bytes) else { return nil }
        let quote = UInt8(ascii: "\"")
        let rest = bytes[(place + key.count)...].drop { $0 == UInt8(ascii: " ") }
        guard rest.first == quote else { return nil }
        var isEscaped = false
        let text = rest.dropFirst().prefix(400).prefix { byte in
            if isEscaped {
                isEscaped = false
                return true
            }
            isEscaped = byte == UInt8(ascii: "\\")
            return byte != quote
        }
        return String(decoding: text, as: UTF8.self)
    }
}

/// Bytes to look for in many texts. It looks at one byte in `count` or so (Horspool 1980).
struct BytePattern: Sendable {
    private let bytes: [UInt8]
    /// For each byte, how far the pattern may move when that byte stands under its end.
    private let shifts: [Int]

    var count: Int { bytes.count }

    init(_ text: String) {
        precondition(!text.isEmpty, "an empty pattern is everywhere")
        bytes = Array(text.utf8)
        var shifts = [Int](repeating: bytes.count, count: 256)
        for (index, byte) in bytes.dropLast().enumerated() { shifts[Int(byte)] = bytes.count - 1 - index }
        self.shifts = shifts
    }

    /// Where the pattern begins for the first time; nil where it is not in the text.
    func firstMatch(in text: UnsafeRawBufferPointer) -> Int? {
        var end = bytes.count - 1
        while end < text.count {
            var back = 0
            while back < bytes.count, text[end - back] == bytes[bytes.count - 1 - back] { back += 1 }
            if back == bytes.count { return end - bytes.count + 1 }
            end += shifts[Int(text[end])]
        }
        return nil
    }
}
