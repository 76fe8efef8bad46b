import Foundation
import RecordModel
import Testing

@testable import zonekeeper

@Suite("Preferences as files")
struct PreferenceFileTests {
    private typealias Entry = PropertyValue.Entry

    private static let values: [(String, PropertyValue)] = [
        ("bool", .bool(true)), ("zero", .int64(0)), ("one", .int64(1)), ("least", .int64(.min)), ("most", .int64(.max)),
        ("double", .double(1)), ("tiny", .double(.leastNonzeroMagnitude)), ("infinite", .double(-.infinity)),
        ("text", .string("a <b>\n&")),
        ("empty", .string("")), ("data", .data([0, 255])), ("date", .date(1_700_000_000_000)),
        ("before", .date(-1_000)),
        ("list", .array([.bool(false), .array([]), .dictionary([Entry(key: "k", value: .int64(2))])])),
        ("é", .string("日")),
    ]

    private func file(_ values: [(String, PropertyValue)]) throws -> PreferenceFile {
        try PreferenceFile(values.map { Entry(key: $0.0, value: $0.1) })
    }

    @Test("every type comes back from a file as it was", arguments: PreferenceFormat.allCases)
    func roundTrip(format: PreferenceFormat) throws {
        let file = try file(Self.values)
        let bytes = try file.encoded(format)
        #expect(try PreferenceFile(bytes, format: nil) == file)
        #expect(try PreferenceFile(bytes, format: format) == file)
    }

    @Test(
        "JSON keeps milliseconds and control characters; a property list has whole seconds, and says what it cannot hold"
    )
    func formats() throws {
        let file = try file([("a", .date(1_500)), ("b", .string("\u{1}"))])
        #expect(try PreferenceFile(file.encoded(.json), format: nil) == file)
        do throws(CommandFailure) {
            _ = try file.encoded(.plist)
            Issue.record("control characters in XML")
        } catch {
            #expect(error.message.hasPrefix("b:"), "\(error)")
        }
    }

    @Test(
        "what is wrong with a file is said, with the place",
        arguments: [
            ("{}", "values"), ("{", "JSON"), (#"{"values": {"a": {"value": 1, "type": "STRING"}}}"#, "a"),
            (#"{"values": {"a": null}}"#, "a"),
            ("nonsense", "property list"),
            ("<plist version=\"1.0\"><array/></plist>", "dictionary"),
            (
                "<plist version=\"1.0\"><dict><key>a</key><array><integer>18446744073709551615</integer></array></dict></plist>",
                "a[0]"
            ),
        ])
    func faults(example: (text: String, word: String)) {
        do throws(CommandFailure) {
            _ = try PreferenceFile(Array(example.text.utf8), format: nil)
            Issue.record("\(example.text) was taken")
        } catch {
            #expect(error.message.contains(example.word), "\(error)")
        }
    }

    @Test("an import writes what differs, and deletes only where it replaces")
    func plan() throws {
        let file = try file([("new", .int64(1)), ("same", .bool(true)), ("type", .double(1))])
        let store = try self.file([("same", .bool(true)), ("type", .int64(1)), ("gone", .string("x"))])
        let plan = PreferenceImport(file, into: store, replaces: false)
        #expect(plan.changes.map(\.key) == ["new", "type"] && plan.unchanged == 1)
        #expect(plan.summary == "1 new, 1 changed, 0 deleted, 1 unchanged")
        let replacing = PreferenceImport(file, into: store, replaces: true)
        #expect(replacing.changes.map(\.key) == ["new", "type", "gone"])
        #expect(replacing.batch["writes"]?.array?.last?["value"] == .null)
        #expect(replacing.batch["writes"]?.array?.first?["value"]?["type"] == .string("INT64"))
        #expect(PreferenceImport(store, into: store, replaces: true).changes.isEmpty)
    }

    @Test("an import tells values apart by their bytes, as the store does")
    func bytes() throws {
        let file = try file([("nan", .double(.nan)), ("text", .string("\u{e9}")), ("zero", .double(-0.0))])
        let store = try self.file([("nan", .double(.nan)), ("text", .string("e\u{301}")), ("zero", .double(0))])
        let plan = PreferenceImport(file, into: store, replaces: true)
        #expect(plan.changes.map(\.key) == ["text", "zero"] && plan.unchanged == 1)
    }
}
