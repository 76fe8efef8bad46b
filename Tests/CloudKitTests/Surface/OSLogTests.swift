import Foundation
import Logging
import Synchronization
import Testing

@testable import OSLog

@Suite("Logging as os.Logger does")
struct OSLogTests {
    private func shown(_ message: OSLogMessage, debugging: Bool = false) -> String {
        message.text(showsPrivateValues: debugging)
    }

    @Test("text and objects are private, numbers, truth values and types are public")
    func privacyByType() {
        let name = "Tami"
        let date = Date(timeIntervalSince1970: 0)
        #expect(shown("plain") == "plain")
        #expect(shown("\(name) is \(48), \(true), \(1.5), \(Int.self)") == "<private> is 48, true, 1.500000, Int")
        #expect(shown("\(date)") == "<private>")
        #expect(shown("\(CocoaError(.fileNoSuchFile))") == "<private>")
        #expect(shown("\(name)", debugging: true) == "Tami")
    }

    @Test("an object that may be missing is private, and nil where it is")
    func optionalObjects() {
        let (name, none): (NSString?, NSObject?) = ("Tami", nil)
        #expect(shown("\(name), \(none)") == "<private>, <private>")
        #expect(shown("\(name, privacy: .public), \(none, privacy: .public)") == "Tami, nil")
    }

    @Test("a format shows numbers, hides objects and text, and obeys its options")
    func formatStrings() {
        let examples: [(StaticString, [any CVarArg], String)] = [
            ("%d of %u%%", [3, 4], "3 of 4%"),
            ("%@ %{public}@", ["a" as NSString, "b" as NSString], "<private> b"),
            ("%{private}d %{public, bool}d", [1, 0], "<private> false"),
            ("%05.1f|%x|%X", [2.25, 255, 255], "002.2|ff|FF"), ("%lld %hhu %zd", [-5, 7, 8], "-5 7 8"),
            ("%c%c", [72, 105], "Hi"), ("%d %d", [1], "1 <missing>"), ("%x", [Int32(-1)], "ffffffff"),
            ("100%%", [], "100%"),
        ]
        for (format, arguments, text) in examples {
            #expect(shown(OSLogFormat.message(format, arguments)) == text)
        }
    }

    @Test("a value says who may read it")
    func privacyByName() {
        let name = "Tami"
        #expect(shown("\(name, privacy: .public)") == "Tami")
        #expect(shown("\(7, privacy: .private)") == "<private>")
        #expect(shown("\(7, privacy: .private)", debugging: true) == "7")
        #expect(shown("\(name, privacy: .sensitive)", debugging: true) == "<private>")
        #expect(shown("\(name, privacy: .auto)") == "<private>")
    }

    @Test("a mask tells equal values from others, and nothing else")
    func mask() {
        let names = ["Tami", "Tami", "Comet"]
        let masked = names.map { shown("\($0, privacy: .private(mask: .hash))") }
        #expect(masked[0] == masked[1] && masked[0] != masked[2])
        #expect(masked[0].hasPrefix("<mask.hash: '") && !masked[0].contains("Tami"))
        #expect(shown("\("Tami", privacy: .auto(mask: .hash))", debugging: true) == "Tami")
    }

    @Test("numbers, truth values and columns are formatted")
    func formats() {
        #expect(shown("\(255, format: .hex(includePrefix: true, uppercase: true, minDigits: 4))") == "0x00FF")
        #expect(shown("\(-8, format: .octal)") == "-10")
        #expect(shown("\(5, format: .decimal(explicitPositiveSign: true))") == "+5")
        #expect(shown("\(2.345, format: .fixed(precision: 1))") == "2.3")
        #expect(shown("\(Float(1500), format: .exponential(precision: 1))") == "1.5e+03")
        #expect(shown("\(true, format: .answer)") == "YES")
        #expect(
            shown("[\(7, align: .right(columns: 3))|\("a", align: .left(columns: 3), privacy: .public)]") == "[  7|a  ]"
        )
    }

    @Test("types of messages have Apple's numbers")
    func levels() {
        let types: [OSLogType] = [.default, .info, .debug, .error, .fault]
        #expect(types.map(\.rawValue) == [0, 1, 2, 16, 17])
    }

    @Test("a message that is not written is not put together")
    func lazy() {
        let logger = Logger(subsystem: "com.example.tests", category: "lazy")
        var evaluated = 0
        func count() -> Int {
            evaluated += 1
            return evaluated
        }
        // Debug messages are below the level that swift-log writes by itself.
        logger.debug("evaluated \(count()) times")
        #expect(evaluated == 0)
    }

    @Test("signposts say what begins, happens and ends, with IDs, lengths and what is added")
    func signposts() throws {
        let written = Lines()
        let log = OSLog(Logger(written.logger, category: ""))
        os_signpost(.begin, log: log, name: "fetch")
        os_signpost(.event, log: log, name: "page", "%d records of %@", 3, "Notes" as NSString)
        let id = OSSignpostID(0xAB)
        os_signpost(.end, log: log, name: "fetch", signpostID: id, "%{public}s", "done" as NSString)
        os_signpost(.event, log: log, name: "none", signpostID: .invalid)
        os_signpost(.event, log: .disabled, name: "none")
        #expect(written.all == ["fetch: begin", "page: event; 3 records of <private>", "fetch ab: end; done"])
        #expect(OSSignpostID.null < id && [OSSignpostType.event, .begin, .end].map(\.rawValue) == [0, 1, 2])

        let signposter = OSSignposter(logHandle: log)
        let state = signposter.beginAnimationInterval("move", id: id, "\(1)")
        let elsewhere = try JSONDecoder().decode(
            OSSignpostIntervalState.self, from: try JSONEncoder().encode(state))
        signposter.endInterval("move", elsewhere)
        signposter.endInterval("move", state)
        signposter.emitEvent("page", "\(3) records")
        #expect(signposter.isEnabled && signposter.withIntervalSignpost("sum") { 1 + 1 } == 2)
        let more = written.all.dropFirst(3).map { $0.replacing(/after .*/, with: "after a while") }
        #expect(
            more == [
                "move ab: begin; 1", "move ab: end", "move ab: end after a while", "page: event; 3 records",
                "sum: begin", "sum: end after a while",
            ])
        #expect(!OSSignposter.disabled.isEnabled && !OSLog.disabled.signpostsEnabled)
    }
}

/// What a logger wrote, of every level.
private final class Lines: Sendable {
    private let lines = Mutex<[String]>([])
    var all: [String] { lines.withLock { $0 } }
    var logger: Logging.Logger { Logging.Logger(label: "test") { _ in Handler(lines: self) } }

    private struct Handler: LogHandler {
        let lines: Lines
        var logLevel = Logging.Logger.Level.trace
        var metadata: Logging.Logger.Metadata = [:]
        subscript(metadataKey key: String) -> Logging.Logger.Metadata.Value? {
            get { metadata[key] }
            set { metadata[key] = newValue }
        }

        func log(event: LogEvent) { lines.lines.withLock { $0.append("\(event.message)") } }
    }
}
