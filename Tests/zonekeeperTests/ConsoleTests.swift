import Foundation
import Glibc
import RecordModel
import TestSupport
import Testing

@testable import zonekeeper

@Suite("What commands print")
struct ConsoleTests {
    @Test("Columns are as wide as their widest cell, and lines do not end in spaces")
    func tables() {
        var table = Table("A", "LONG", "C")
        table.add(["xx", "y", "z"])
        table.add(["", "yyyyy\nq", ""])
        #expect(table.text == "A   LONG     C\nxx  y        z\n    yyyyy q")
    }

    @Test("A browser is told of a link by a file that only this user can read")
    func consolePage() throws {
        let folder = NSTemporaryDirectory() + "console-\(UUID().uuidString)"
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: folder) }
        var paths: Set<String> = []
        for secret in ["s1", "s2"] {
            let link = "https://localhost/console/?a=\"1\"&b#link=\(secret)"
            let path = try ConsoleOpenCommand.page(to: link, in: folder)
            paths.insert(path)
            #expect(path.hasPrefix(folder + "/") && !path.contains(secret))
            let text = try String(contentsOfFile: path, encoding: .utf8)
            let place = "https://localhost/console/?a=&quot;1&quot;&amp;b#link=\(secret)"
            #expect(text.contains("http-equiv=\"refresh\" content=\"0; url=\(place)\""))
            #expect(try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int == 0o600)
        }
        #expect(paths.count == 1, "one takes the place of the other")
    }

    @Test("Control characters do not reach the terminal")
    func controls() {
        var table = Table("NAME", "MORE")
        table.add(["a\u{1B}[2Jb\u{7}", "c\td\r\ne\u{0}\u{9B}\u{7F}é\u{301}👩‍👧"])
        #expect(table.rows == [["a [2Jb ", "c d e   é\u{301}👩‍👧"]])
    }

    @Test("A table in pieces has its headings once, and its columns stay")
    func pieces() {
        var widths: [Int] = []
        var texts: [String] = []
        for cell in ["long one", "x", "longer still"] {
            var table = Table("A", "B")
            table.add([cell, "y"])
            texts.append(table.lines(widths: &widths))
        }
        #expect(texts == ["A         B\nlong one  y", "x         y", "longer still  y"])
    }

    /// Runs the program, which stands for `"$0"`, in a shell.
    private func shell(_ script: String) throws -> FinishedProgram {
        try FinishedProgram(["sh", "-c", script, ServerProcess.binary.path])
    }

    @Test("What does not get out to standard output is a failure, and is said: of texts, JSON and help")
    func fullOutput() throws {
        let line = #"printf 'AD\t+4230+00131\tEurope/Andorra\n' | "$0" sample-places -"#
        let whole = try shell(line)
        #expect(whole.status == 0 && whole.output.contains(#""code":"AD""#) && whole.errors.isEmpty, "\(whole)")
        let scripts = [line + " >/dev/full", #""$0" help >/dev/full"#, #""$0" --version >/dev/full"#]
        for script in scripts {
            let lost = try shell(script)
            #expect(lost.status == 1, "\(script): \(lost)")
            #expect(lost.errors == "error: standard output lacks what could not be written: No space left on device\n")
        }
    }

    @Test("Standard input that is no UTF-8 is refused, and not taken with other characters in the place of its bytes")
    func foreignInput() throws {
        let refused = try shell(#"printf 'AD\t+4230+00131\tEurope/Andorra\tcaf\351\n' | "$0" sample-places -"#)
        #expect(refused.status == 1 && refused.output.isEmpty, "\(refused)")
        #expect(refused.errors == "error: standard input is not UTF-8 text\n")
    }

    @Test("A signal puts the terminal back before it does what it does")
    func terminal() throws {
        let terminal = open("/dev/ptmx", O_RDWR | O_NOCTTY)
        try #require(terminal >= 0)
        defer { close(terminal) }
        var before = termios()
        try #require(tcgetattr(terminal, &before) == 0)
        var silent = before
        silent.c_lflag &= ~tcflag_t(ECHO)
        try #require(tcsetattr(terminal, TCSANOW, &silent) == 0)
        var ends: [Int32] = [0, 0]
        try #require(pipe(&ends) == 0)
        let told = ends[1]
        // A signal that nothing else uses stands for SIGTERM, which would end the tests. It may have been ignored.
        signal(SIGUSR2, SIG_DFL)
        let guardian = TerminalGuard(terminal, settings: before, signals: [SIGUSR2]) { number in
            var byte = UInt8(truncatingIfNeeded: number)
            _ = write(told, &byte, 1)
        }
        try #require(kill(getpid(), SIGUSR2) == 0)
        var byte: UInt8 = 0
        #expect(read(ends[0], &byte, 1) == 1 && Int32(byte) == SIGUSR2)
        var now = termios()
        try #require(tcgetattr(terminal, &now) == 0)
        #expect(now.c_lflag == before.c_lflag)
        guardian.restore()
        for end in ends { close(end) }
    }

    @Test("Records of different fields share one table")
    func records() throws {
        let records = try JSONParser.parse(
            Array(
                """
                [{"recordName":"a","fields":{"at":{"value":{"latitude":1.5,"longitude":2},"type":"LOCATION"}}},
                 {"recordName":"b","fields":{"when":{"value":1000,"type":"TIMESTAMP"},"tags":{"value":["x","y"]}}}]
                """.utf8)
        ).array
        #expect(
            RecordTable.table(records ?? []) == """
                RECORD NAME  at     tags  when
                a            1.5,2
                b                   x, y  1970-01-01T00:00:01Z
                """)
    }

    @Test("Property lists are shown without the types of their members")
    func preferences() throws {
        let json = try JSONParser.parse(
            Array(
                #"[{"value":1,"type":"INT64"},{"value":{"a":{"value":"x","type":"STRING"}},"type":"DICTIONARY"}]"#.utf8)
        )
        #expect(json.simplified.plainText == #"[1,{"a":"x"}]"#)
    }

    @Test("Times are read as milliseconds or ISO 8601")
    func times() {
        #expect(Times.milliseconds("1500") == 1_500)
        #expect(Times.milliseconds("1970-01-01T00:00:01.5Z") == 1_500)
        #expect(Times.milliseconds("1970-01-01T01:00:00+01:00") == 0)
        #expect(Times.milliseconds("yesterday") == nil)
        #expect(Times.text(1_000) == "1970-01-01T00:00:01Z")
        #expect(Times.text(253_402_300_799_000) == "9999-12-31T23:59:59Z")
        #expect([Int64.min, .max].map { Times.text($0) } == ["-9223372036854775808", "9223372036854775807"])
    }

    @Test("A node's state follows from its answer, its process and where it is")
    func states() {
        #expect(NodeStatus.state(health: .ready, isRunning: false, isLocal: true) == .ready)
        #expect(NodeStatus.state(health: .notReady, isRunning: true, isLocal: true) == .starting)
        #expect(NodeStatus.state(health: .refused, isRunning: true, isLocal: true) == .starting)
        #expect(NodeStatus.state(health: .refused, isRunning: false, isLocal: true) == .stopped)
        #expect(NodeStatus.state(health: .refused, isRunning: false, isLocal: false) == .unreachable)
        #expect(NodeStatus.state(health: .silent, isRunning: true, isLocal: true) == .unreachable)
    }
}
