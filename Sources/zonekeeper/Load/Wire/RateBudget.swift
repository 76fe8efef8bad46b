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
