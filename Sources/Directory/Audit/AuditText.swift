import Crypto
import RecordModel

/// Makes text that may stand in the audit log.
package enum AuditText {
    /// Unicode scalars of a text at most.
    static let scalarsMax = 512

    /// An id, so that it can be told from others. Somebody may have given a secret where an id was meant: of text that
    /// is too long, or looks like no id, a piece of its hash stands there.
    package static func id(_ text: String) -> String {
        let isHex = text.utf8.allSatisfy {
            (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) || (UInt8(ascii: "a")...UInt8(ascii: "f")).contains($0)
        }
        if text.utf8.count <= 16 || (isHex && text.utf8.count <= 32) { return text }
        // The id of a server key is as long as a token's secret.
        if isHex, text.utf8.count == 64 { return text.prefix(16) + "…" }
        return "#" + Hex.encode(Array(SHA256.hash(data: Array(text.utf8)).prefix(4)))
    }

    /// Whether a scalar cannot be seen, or changes how what stands around it is seen.
    static func isHidden(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.properties.generalCategory {
        case .control, .format, .lineSeparator, .paragraphSeparator, .surrogate, .unassigned: true
        default: false
        }
    }

    /// The beginning of a text that is too long. What cannot be seen stands there as its number, such as `\u{1b}`:
    /// nobody else's text may act on the terminal that shows the log, or look like another's.
    static func bounded(_ text: String) -> String {
        let shown = text.unicodeScalars.prefix(scalarsMax + 1)
        if shown.count <= scalarsMax, !shown.contains(where: isHidden) { return text }
        var result = String.UnicodeScalarView()
        for scalar in shown {
            if isHidden(scalar) {
                result.append(contentsOf: "\\u{\(String(scalar.value, radix: 16))}".unicodeScalars)
            } else {
                result.append(scalar)
            }
        }
        guard result.count > scalarsMax else { return String(result) }
        return String(String.UnicodeScalarView(result.prefix(scalarsMax - 1))) + "…"
    }
}

extension AuditEvent {
    /// The event with no text longer than the log keeps.
    var bounded: AuditEvent {
        AuditEvent(
            origin: AuditOrigin(
                actor: AuditText.bounded(origin.actor), requestID: AuditText.bounded(origin.requestID),
                address: AuditText.bounded(origin.address), time: origin.time),
            action: AuditText.bounded(action), subject: AuditText.bounded(subject),
            outcome: AuditText.bounded(outcome), count: count)
    }
}
