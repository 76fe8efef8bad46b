import RecordModel
import Service
import Testing

@testable import WebServices

@Suite("Files in forms")
struct MultipartReaderTests {
    private static let head = "--X\r\nContent-Disposition: form-data; name=\"files\"; filename=\"a.png\"\r\n\r\n"

    /// What a body holds that comes in parts of so many bytes.
    private func file(
        in body: String, parts: Int = .max, type: String = "multipart/form-data; boundary=X"
    ) throws -> String {
        var reader = try #require(try MultipartReader(contentType: type))
        var file: [UInt8] = []
        var rest = Array(body.utf8)[...]
        while !rest.isEmpty {
            file += try reader.take(rest.prefix(parts))
            rest = rest.dropFirst(parts)
        }
        try reader.finish()
        return String(decoding: file, as: UTF8.self)
    }

    @Test(
        "a file is taken as it is, however its bytes arrive",
        arguments: ["", "abc", "\r\n", "\r\n--", "\r\n--Y\r\n", "--X--", "\r\n-\r\n--\r\n--x\r", "a\r\r\n\r\n\n"])
    func taken(content: String) throws {
        for parts in [1, 2, 3, 7, .max] {
            let body = "preamble\r\n\(Self.head)\(content)\r\n--X--\r\nepilogue"
            #expect(try file(in: body, parts: parts) == content)
        }
    }

    @Test("fields beside the file are passed over, in any order")
    func fields() throws {
        let field = "--X\r\nContent-Disposition: form-data; name=\"title\"\r\n\r\ntext\r\n"
        #expect(try file(in: field + Self.head + "abc\r\n" + field + "--X--") == "abc")
        let named = "--X \r\ncontent-disposition: form-data; name=files\r\nContent-Type: image/png\r\n\r\nabc\r\n--X--"
        #expect(try file(in: named, type: "Multipart/Form-Data; Boundary=\"X\"") == "abc")
    }

    @Test(
        "what is no form with one file is refused",
        arguments: [
            ("", "last boundary"), (head + "abc", "last boundary"), (head + "abc\r\n--X", "last boundary"),
            (head + "abc\r\n--X-", "last boundary"), ("--X--", "no file"),
            ("--X\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\nb\r\n--X--", "no file"),
            (head + "a\r\n" + head + "b\r\n--X--", "more than one file"), ("--Xabc", "whole of its line"),
            ("--X\r\n" + String(repeating: "a", count: 9_000), "head"),
            (String(repeating: "a", count: 70_000), "beside its file"),
        ])
    func refused(body: String, reason: String) {
        for parts in [1, 1_000, .max] {
            #expect { try file(in: body, parts: parts) } throws: {
                ($0 as? RequestFailure)?.error.reason.contains(reason) == true
            }
        }
    }

    @Test("other bodies are files themselves; a form needs a boundary")
    func types() throws {
        #expect(try MultipartReader(contentType: nil) == nil)
        #expect(try MultipartReader(contentType: "text/plain") == nil)
        for type in ["multipart/form-data", "multipart/form-data; boundary=", "multipart/form-data; boundary=\"\""] {
            #expect(throws: RequestFailure.self) { try MultipartReader(contentType: type) }
        }
    }
}

@Suite("Ranges of files")
struct WantedBytesTests {
    @Test(
        "one range is served, what is not understood means all",
        arguments: [
            (nil, .all), ("bytes=0-0", .part(0..<1)), ("bytes=10-19", .part(10..<20)), ("bytes=90-", .part(90..<100)),
            ("bytes=90-1000", .part(90..<100)), ("bytes=-10", .part(90..<100)), ("bytes=-1000", .part(0..<100)),
            ("BYTES=1-2", .part(1..<3)), ("bytes=100-", .unsatisfiable), ("bytes=100-200", .unsatisfiable),
            ("bytes=-0", .unsatisfiable), ("bytes=5-4", .all), ("bytes=-", .all), ("bytes=", .all),
            ("bytes=1-2,4-5", .all), ("bytes=a-b", .all), ("bytes=+1-2", .all), ("items=1-2", .all),
            ("bytes=99999999999999999999-", .unsatisfiable), ("bytes=0-99999999999999999999", .part(0..<100)),
        ] as [(String?, WantedBytes)])
    func ranges(range: String?, wanted: WantedBytes) {
        #expect(WantedBytes(range: range, ifRange: nil, tag: "\"t\"", size: 100) == wanted)
    }

    @Test("a range of another version means all; an empty file has none")
    func conditions() {
        #expect(WantedBytes(range: "bytes=0-0", ifRange: "\"t\"", tag: "\"t\"", size: 9) == .part(0..<1))
        #expect(WantedBytes(range: "bytes=0-0", ifRange: "\"u\"", tag: "\"t\"", size: 9) == .all)
        #expect(WantedBytes(range: "bytes=0-0", ifRange: "W/\"t\"", tag: "\"t\"", size: 9) == .all)
        for range in ["bytes=0-", "bytes=-1", "bytes=0-0"] {
            #expect(WantedBytes(range: range, ifRange: nil, tag: "", size: 0) == .unsatisfiable)
        }
    }

    @Test(
        "a file's name is one in the folder at hand",
        arguments: [
            ("photo.jpg", "photo.jpg"), ("../../etc/passwd", "_.._etc_passwd"), ("..", "asset"), ("", "asset"),
            ("a\"\r\nb", "a___b"), ("${f}", "__f_"), ("naïve\u{202E}", "na_ve_"), (" .a", "a"),
        ])
    func names(text: String, name: String) { #expect(WebResponder.fileName(text) == name) }
}
