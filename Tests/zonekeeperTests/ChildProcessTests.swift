import Foundation
import TestSupport
import Testing

@Suite("Programs that tests run")
struct ChildProcessTests {
    private let null: FileHandle

    init() throws { null = try FileHandle(forUpdating: URL(filePath: "/dev/null")) }

    @Test("A program has no files of this process but those that it is given")
    func files() throws {
        var ends: [Int32] = [0, 0]
        try #require(pipe(&ends) == 0)
        let child = try ChildProcess(["sleep", "1000"], output: null, errors: null)
        close(ends[1])
        var byte: UInt8 = 0
        #expect(read(ends[0], &byte, 1) == 0, "the pipe has no other end")
        close(ends[0])
        #expect(child.isRunning)
    }

    @Test("What a program reads, writes and ends with, any number of times")
    func whole() throws {
        let text = String(repeating: "0123456789\n", count: 20_000)
        let script = "cat; echo no >&2; echo $LETTER; exit 3"
        let program = try FinishedProgram(["sh", "-c", script], input: text, environment: ["LETTER": "z"])
        #expect(program.status == 3 && program.output == text + "z\n" && program.errors == "no\n")
        let killed = try FinishedProgram(["sh", "-c", "kill -TERM $$"])
        #expect(killed.status == SIGTERM && killed.text.isEmpty)
        #expect(throws: TestFailure.self) { try FinishedProgram(["no-such-program"]) }
    }

    @Test("A program takes signals that this process ignores, and is waited for by many at a time")
    func signals() async throws {
        signal(SIGPIPE, SIG_IGN)
        let child = try ChildProcess(["sleep", "1000"], output: null, errors: null)
        #expect(child.isRunning)
        child.signal(SIGPIPE)
        let statuses = await withTaskGroup(of: Int32.self) { tasks in
            for _ in 0..<4 { tasks.addTask { child.wait() } }
            return await tasks.reduce(into: []) { $0.append($1) }
        }
        #expect(statuses == [Int32](repeating: SIGPIPE, count: 4))
        #expect(!child.isRunning)
        child.signal(SIGKILL)
        #expect(child.wait() == SIGPIPE)
    }
}
