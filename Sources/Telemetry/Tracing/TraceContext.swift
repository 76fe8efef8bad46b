package import Tracing

/// What all spans of one trace have in common: 16 bytes that are not all zero.
package struct TraceID: Hashable, Sendable {
    /// The first eight bytes and the last eight, each with the most significant byte first.
    package let high: UInt64
    /// The last eight.
    package let low: UInt64

    /// - Returns: nil for zero, which is no id.
    package init?(high: UInt64, low: UInt64) {
        guard high != 0 || low != 0 else { return nil }
        self.high = high
        self.low = low
    }

    /// Reads 32 hexadecimal digits in lower case.
    package init?(_ text: String) {
        guard text.utf8.count == 32, let high = HexDigits.number(text.utf8.prefix(16)),
            let low = HexDigits.number(text.utf8.dropFirst(16))
        else { return nil }
        self.init(high: high, low: low)
    }

    /// 32 digits in lower case.
    package var text: String { HexDigits.text(high) + HexDigits.text(low) }
}

/// A span's place in a trace, as it goes from a client to a node and from a node to another.
package struct TraceContext: Hashable, Sendable {
    /// The trace.
    package var trace: TraceID
    /// The span; not 0.
    package var span: UInt64
    /// Whether the trace is recorded.
    package var isSampled: Bool

    /// - Parameter span: not 0.
    package init(trace: TraceID, span: UInt64, isSampled: Bool) {
        self.trace = trace
        self.span = span
        self.isSampled = isSampled
    }

    /// Reads the header `traceparent` of W3C's Trace Context. Of a version that is not known, what version 00 has.
    /// - Returns: nil for what is malformed, which the recommendation has treated as if it were not there.
    package init?(traceparent text: String) {
        let parts = text.utf8.split(separator: UInt8(ascii: "-"), maxSplits: 4, omittingEmptySubsequences: false)
        guard parts.count >= 4, parts[0].count == 2, let version = HexDigits.number(parts[0]), version != 0xFF,
            parts.count == 4 || version > 0, parts[1].count == 32, parts[2].count == 16, parts[3].count == 2,
            let high = HexDigits.number(parts[1].prefix(16)), let low = HexDigits.number(parts[1].dropFirst(16)),
            let trace = TraceID(high: high, low: low), let span = HexDigits.number(parts[2]), span != 0,
            let flags = HexDigits.number(parts[3])
        else { return nil }
        self.init(trace: trace, span: span, isSampled: flags & 1 == 1)
    }

    /// As the header `traceparent` has it.
    package var traceparent: String { "00-\(trace.text)-\(Self.text(ofSpan: span))-\(isSampled ? "01" : "00")" }

    /// 16 digits in lower case.
    package static func text(ofSpan span: UInt64) -> String { HexDigits.text(span) }
}

extension ServiceContext {
    private enum TraceKey: ServiceContextKey {
        typealias Value = TraceContext
    }

    /// The span that is at work.
    package var trace: TraceContext? {
        get { self[TraceKey.self] }
        set { self[TraceKey.self] = newValue }
    }
}

/// Numbers as hexadecimal digits in lower case, which is what trace contexts have.
enum HexDigits {
    /// - Returns: nil for more than 64 bits, and for anything else than digits.
    static func number(_ digits: some Collection<UInt8>) -> UInt64? {
        // Without this, signs and upper case would pass.
        guard digits.allSatisfy({ "0123456789abcdef".utf8.contains($0) }) else { return nil }
        return UInt64(String(decoding: digits, as: UTF8.self), radix: 16)
    }

    /// 16 digits.
    static func text(_ number: UInt64) -> String {
        let digits = String(number, radix: 16)
        return String(repeating: "0", count: 16 - digits.count) + digits
    }
}
