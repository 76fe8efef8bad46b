import Foundation

enum LoadOutcome: Hashable, Sendable {
    case succeeded
    /// Told to slow down: `THROTTLED`, or status 429. `retryAfter` is in nanoseconds; nil where the answer names no
    /// time.
    case throttled(status: Int, retryAfter: UInt64?)
    /// An answer that is an error, as a whole or for one of its records; `code` is CloudKit's `serverErrorCode`, where
    /// it has one.
    case failed(status: Int, code: String?, reason: String?)
    /// No answer: what went wrong with the connection, such as `deadlineExceeded`.
    case unanswered(String)
}

/// Reads as much of an answer as a load needs, at the cost of a search through its bytes.
enum LoadAnswer {
    private static let code = BytePattern("\"serverErrorCode\":")
    private static let reason = BytePattern("\"reason\":")
    private static let retryAfter = BytePattern("\"retryAfter\":")
    private static let retryAfterMilliseconds = BytePattern("\"retryAfterMilliseconds\":")
    private static let syncToken = BytePattern("\"syncToken\":")

    /// What answers without the proof are counted under.
    static let emptyAnswer = "(empty answer)"
    /// What files of another length than was saved are counted under.
    static let otherLength = "(file of another length)"
    static let throttledCode = "THROTTLED"
    /// Counts refusals that do not come from the container's limit, such as those of an address with too many wrong
    /// tokens.
    static let otherThrottledCode = "THROTTLED (not by the container's limit)"

    /// - Parameters:
    ///   - proof: bytes that a right answer holds: one without them counts as an error, not as a fast success.
    ///   - retryAfterHeader: seconds, of the header `Retry-After`; what the body says goes first, its milliseconds
    ///     before its seconds.
    ///   - namesLimit: whether the answer's headers say which limit it is about; a refusal by the container's limit
    ///     does.
    static func judge(
        status: Int, body: UnsafeRawBufferPointer, proof: BytePattern?, retryAfterHeader: Double? = nil,
        namesLimit: Bool = true
    ) -> LoadOutcome {
        let isFailure = code.firstMatch(in: body) != nil
        guard status == 200, !isFailure else {
            let name = string(after: code, in: body)
            if status == 429 || name == throttledCode {
                guard namesLimit else {
                    return .failed(status: status, code: otherThrottledCode, reason: string(after: reason, in: body))
                }
                let exact = number(after: retryAfterMilliseconds, in: body).map { $0 / 1_000 }
                return .throttled(
                    status: status,
                    retryAfter: nanoseconds(exact ?? number(after: retryAfter, in: body) ?? retryAfterHeader))
            }
            return .failed(status: status, code: name, reason: string(after: reason, in: body))
        }
        if let proof, proof.firstMatch(in: body) == nil {
            return .failed(status: status, code: emptyAnswer, reason: nil)
        }
        return .succeeded
    }

    /// The token of an answer of `changes/zone` for one zone.
    static func syncToken(in body: UnsafeRawBufferPointer) -> String? { string(after: syncToken, in: body, max: 4_096) }

    private static func nanoseconds(_ seconds: Double?) -> UInt64? {
        guard let seconds, seconds >= 0, seconds < 1_000_000_000 else { return nil }
        return UInt64((seconds * 1_000_000_000).rounded(.up))
    }

    /// The number after a key's first place.
    private static func number(after key: BytePattern, in bytes: UnsafeRawBufferPointer) -> Double? {
        guard let place = key.firstMatch(in: bytes) else { return nil }
        let digits = bytes[(place + key.count)...].drop { $0 == UInt8(ascii: " ") }.prefix(32).prefix { byte in
            switch byte {
            case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "."), UInt8(ascii: "-"), UInt8(ascii: "+"),
                UInt8(ascii: "e"), UInt8(ascii: "E"):
                true
            default: false
            }
        }
        return Double(String(decoding: digits, as: UTF8.self))
    }

    /// The string after a key's first place, with its escapes as they are; our own server never writes it in another
    /// way.
    private static func string(after key: BytePattern, in bytes: UnsafeRawBufferPointer, max: Int = 400) -> String? {
        guard let place = key.firstMatch(in: bytes) else { return nil }
        let quote = UInt8(ascii: "\"")
        let rest = bytes[(place + key.count)...].drop { $0 == UInt8(ascii: " ") }
        guard rest.first == quote else { return nil }
        var isEscaped = false
        let text = rest.dropFirst().prefix(max).prefix { byte in
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

/// What a node says about a limit in the headers `RateLimit-Policy` and `RateLimit`: the first policy of each.
struct RateBudget: Hashable, Sendable {
    /// Requests in a window of so many seconds.
    var quota: Double?
    var windowSeconds: Double?
    var remaining: Double?
    /// Seconds until there is more.
    var resetSeconds: Double?

    /// Requests a second that the policy allows.
    var rate: Double? {
        guard let quota, let windowSeconds, windowSeconds > 0 else { return quota }
        return quota / windowSeconds
    }

    /// Takes over one header's value, such as `"requests";q=40;w=1`; members that it does not know are passed over.
    mutating func take(_ value: some Collection<UInt8>) {
        for part in value.prefix(while: { $0 != UInt8(ascii: ",") }).split(separator: UInt8(ascii: ";")) {
            let words = part.drop { $0 == UInt8(ascii: " ") }.split(separator: UInt8(ascii: "="), maxSplits: 1)
            guard words.count == 2, words[0].count == 1, let name = words[0].first else { continue }
            guard let number = Double(String(decoding: words[1], as: UTF8.self)), number.isFinite, number >= 0 else {
                continue
            }
            switch name {
            case UInt8(ascii: "q"): quota = number
            case UInt8(ascii: "w"): windowSeconds = number
            case UInt8(ascii: "r"): remaining = number
            case UInt8(ascii: "t"): resetSeconds = number
            default: continue
            }
        }
    }
}

struct BytePattern: Hashable, Sendable {
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
