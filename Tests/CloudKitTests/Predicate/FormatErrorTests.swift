import CoreLocation
import Foundation
import RaftCore
import RecordModel
import Testing

@testable import CloudKit

/// A format that cannot be read, where, and what was expected.
struct FormatFault: Sendable, CustomTestStringConvertible {
    var format: String
    var arguments: @Sendable () -> [Any]
    var position: Int
    var expected: String
    var found: String

    init(
        _ format: String, _ arguments: @autoclosure @escaping @Sendable () -> [Any] = [], at position: Int,
        _ expected: String, found: String
    ) {
        self.format = format
        self.arguments = arguments
        self.position = position
        self.expected = expected
        self.found = found
    }

    var testDescription: String { format }

    static let grammar: [FormatFault] = [
        FormatFault("", at: 0, "a field, a value or '('", found: "the end"),
        FormatFault("title", at: 5, "an operator such as =", found: "the end"),
        FormatFault("title =", at: 7, "a field, a value", found: "the end"),
        FormatFault("= 1", at: 0, "a field, a value", found: "'='"),
        FormatFault("a = 1 AND", at: 9, "a field, a value", found: "the end"),
        FormatFault("a = 1 b = 2", at: 6, "AND, OR or the end", found: "'b'"),
        FormatFault("a = 1 = 2", at: 6, "AND, OR or the end", found: "'='"),
        FormatFault("(a = 1", at: 6, "')'", found: "the end"),
        FormatFault("a = 1)", at: 5, "AND, OR or the end", found: "')'"),
        FormatFault("a IN (1, 2)", at: 7, "lists are written with braces", found: "','"),
        FormatFault("a IN [1, 2]", at: 6, "lists are written with braces", found: "a number"),
        FormatFault("a IN {1, 2", at: 10, "',' or '}'", found: "the end"),
        FormatFault("a IN {1 2}", at: 8, "',' or '}'", found: "a number"),
        FormatFault("a NOT IN {1}", at: 2, "NOT (x IN {1, 2})", found: "'NOT'"),
        FormatFault("a = AND", at: 4, "written #AND", found: "'AND'"),
        FormatFault("(a = 1) = 2", at: 8, "AND, OR or the end", found: "'='"),
        FormatFault("ANY a", at: 5, "a quantifier such as ANY is for one comparison", found: "the end"),
        FormatFault("a ==[x] 'b'", at: 5, "options such as cd", found: "'x'"),
        FormatFault("a == (b = 1)", at: 12, "a field or a value before this", found: "the end"),
        FormatFault("a ? 1", at: 2, "a name, a value, an operator or a bracket", found: "'?'"),
        FormatFault("é 👩‍👩‍👧 = 1", at: 2, "a name, a value", found: "'👩'"),
        FormatFault("a = 'x", at: 6, "' at the end of the string that begins at character 4", found: "the end"),
        FormatFault("a = 'x\\", at: 7, "' at the end of the string", found: "the end"),
        FormatFault("a = '\\x4'", at: 8, "2 hexadecimal digits", found: "'''"),
        FormatFault("a = '\\ud800'", at: 7, "the code of a character", found: "d800"),
        FormatFault("a = 5x", at: 5, "the end of the number", found: "'x'"),
        FormatFault("a = 0xG", at: 6, "digits of base 16", found: "'G'"),
        FormatFault("a = 9223372036854775808", at: 4, "fits 64 bits", found: "9223372036854775808"),
        FormatFault("a = -9223372036854775809", at: 5, "fits 64 bits", found: "-9223372036854775809"),
        FormatFault("a = 1e999", at: 4, "fits 64 bits", found: "1e999"),
        FormatFault("a = -'x'", at: 5, "a number after '-'", found: "a string"),
        FormatFault("distanceToLocation:fromLocation: < 1", at: 33, "'(' and the arguments", found: "'<'"),
    ]

    static let refused: [FormatFault] = [
        FormatFault("a = b + 1", at: 6, "no arithmetic", found: "'+'"),
        FormatFault("a -1 > 2", at: 2, "no arithmetic", found: "'-'"),
        FormatFault("(a) * 2 > 2", at: 4, "no arithmetic", found: "'*'"),
        FormatFault("tags[0] = 'a'", at: 4, "no index", found: "'['"),
        FormatFault("a := 1", at: 2, "assigns nothing", found: "':='"),
        FormatFault("a = $value", at: 4, "pass an argument for %@", found: "'$value'"),
        FormatFault("tags.@count > 1", at: 5, "no collection operators such as @count", found: "'@count'"),
        FormatFault("@sum.a > 1", at: 0, "no collection operators", found: "'@sum'"),
        FormatFault("CAST(1, 'NSDate') < a", at: 0, "casts nothing", found: "'CAST'"),
        FormatFault("SUBQUERY(a, $x, $x = 1).@count > 0", at: 0, "no SUBQUERY", found: "'SUBQUERY'"),
        FormatFault("'a'.b = 1", at: 3, "an operator", found: "'.'"),
        FormatFault("a. = 1", at: 3, "a name after '.'", found: "'='"),
    ]

    static let arguments: [FormatFault] = [
        FormatFault("a = %@", at: 4, "the one numbered 1", found: "none"),
        FormatFault("a = %@ AND b = %d", [1], at: 15, "the one numbered 2", found: "1"),
        FormatFault("a = %@", [1, 2], at: 6, "as many arguments as placeholders, 1", found: "2"),
        FormatFault("a = '%@'", ["x"], at: 8, "in quotes is text", found: "1"),
        FormatFault(
            "%K = 1", [7], at: 0, "another argument", found: "argument 1, which is a number, not the name of a field"),
        FormatFault("%K = 1", [""], at: 0, "another argument", found: "argument 1, which is an empty name"),
        FormatFault(
            "a = %d", ["x"], at: 4, "another argument for '%d'",
            found: "argument 1, which is a string, not a number; use %@"),
        FormatFault(
            "a = %d", [1.5], at: 4, "for '%d'", found: "argument 1, which is a number with a fraction; use %f or %@"),
        FormatFault(
            "a = %f", [1], at: 4, "for '%f'",
            found: "argument 1, which is a whole number, which %f misreads elsewhere; use %d or %@"),
        FormatFault("a = %s", [1], at: 4, "for '%s'", found: "argument 1, which is a number, not a string"),
        FormatFault(
            "a = %@", [UInt64.max], at: 4, "for '%@'",
            found: "argument 1, which is 18446744073709551615, which does not fit the 64 bits of an INT64"),
        FormatFault(
            "a = %@", [Double.nan], at: 4, "for '%@'",
            found: "argument 1, which is nan, with which nothing can be compared"),
        FormatFault(
            "a = %@", [Date(timeIntervalSince1970: .infinity)], at: 4, "for '%@'",
            found: "argument 1, which is a date too far away"),
        FormatFault(
            "a IN %@", [["x", URLComponents()] as [Any]], at: 5, "for '%@'",
            found:
                "argument 1, which is a list whose member 2 is of type URLComponents; strings, numbers, dates, data, "
                + "locations, references, records, their IDs, and arrays of these can be compared with"),
        FormatFault(
            "a IN %@", [[["x"]]], at: 5, "for '%@'", found: "argument 1, which is a list whose member 1 is a list"),
        FormatFault("a = -%@", ["x"], at: 5, "a number after '-'", found: "'%@'"),
        FormatFault("a = %.2f", [1.0], at: 5, "conversion right after '%'", found: "'.'"),
        FormatFault("a %% 2 = 0", at: 2, "a name, a value or an operator", found: "'%%', a per cent sign"),
        FormatFault("a = %p", [1], at: 5, "conversion right after '%'", found: "'p'"),
    ]
}

@Suite("A format that cannot be read says where and what was expected")
struct FormatErrorTests {
    @Test(
        "Every wrong format of the table has its fault at its place",
        arguments: FormatFault.grammar + FormatFault.refused + FormatFault.arguments)
    func table(_ row: FormatFault) throws {
        let predicate = NSPredicate(format: row.format, argumentArray: row.arguments())
        let error = try #require(predicate.formatError)
        #expect(error.format == row.format)
        #expect(error.position == row.position)
        #expect(error.expected.contains(row.expected), "\(error.expected)")
        #expect(error.found == row.found)
        #expect(refusal(CKQuery(recordType: "Item", predicate: predicate))?.contains(error.description) == true)
    }

    @Test("The text has the format with a caret under the fault")
    func text() throws {
        let error = try #require(NSPredicate(format: "title\n= 'é' ANDD").formatError)
        #expect(
            error.description
                == "Unable to parse the format string: character 12: expected AND, OR or the end, found 'ANDD'\n"
                + "title = 'é' ANDD\n            ^")
    }

    @Test("Of a long format the text shows what is around the fault")
    func longText() throws {
        let format = String(repeating: "a = 1 AND ", count: 100) + "b LIKE" + String(repeating: " ", count: 100)
        let error = try #require(NSPredicate(format: format + "!").formatError)
        let lines = error.description.split(separator: "\n")
        #expect(lines.count == 3)
        #expect(lines[1].count <= 130 && lines[1].hasPrefix("…"))
        #expect(lines[2].hasSuffix("^") && lines[2].count == 62)
    }

    @Test(
        "Nesting without end is refused before the stack is",
        arguments: ["(", "{", "NOT ", "!", "f(", "a IN {", "ANY (", "((-"])
    func nesting(_ piece: String) throws {
        let error = try #require(NSPredicate(format: String(repeating: piece, count: 10_000) + "a = 1").formatError)
        #expect(!error.expected.isEmpty)
        let inside = String(repeating: "(", count: 90) + "a = 1" + String(repeating: ")", count: 90)
        #expect(NSPredicate(format: inside).formatError == nil)
    }

    @Test("A format is read in time that grows with its length, and has a greatest length")
    func length() throws {
        let many = String(repeating: "a = 1 AND ", count: 5_000) + "a = 1"
        let query = query(many)
        #expect(query.predicate.formatError == nil)
        #expect(try query.webForm()?["filterBy"]?.array?.count == 5_001)
        let error = try #require(NSPredicate(format: String(repeating: " ", count: 70_000)).formatError)
        #expect(error.expected == "a format of at most 65536 characters")
    }

    @Test("Any bytes of a format are read or refused, never a trap")
    func garbage() {
        var random = SplitMix64(seed: 6)
        let pieces = [
            "a", "title", " ", "=", "<", "AND", "OR", "NOT", "(", ")", "{", "}", "[", "]", "cd", ",", ".", "'x'", "'",
            "\"",
            "\\", "%@", "%K", "%d", "%", "#", "$", "@", "1", "-", "0x", "1e", ":", "now()", "IN", "ANY", "self",
            "BETWEEN",
            "é", "👩‍👩‍👧", "\n", "CONTAINS", "tokenize:using:", "NULL",
        ]
        var read = 0
        for _ in 0..<3_000 {
            let count = Int.random(in: 1...12, using: &random)
            let format = (0..<count).map { _ in pieces[Int.random(in: 0..<pieces.count, using: &random)] }
                .joined(separator: Bool.random(using: &random) ? " " : "")
            let query = query(format, Bool.random(using: &random) ? ["x", 1] : [])
            if query.predicate.formatError == nil { read += 1 }
            _ = refusal(query)
        }
        #expect(read > 0)
    }
}
