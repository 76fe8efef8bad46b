import Admission
import RecordModel
import Testing

@Suite("Origins of web pages")
struct OriginTests {
    private static let list = ["https://app.example", "http://localhost:8080", "https://[2001:db8::1]:8443"]

    @Test("an empty list allows every page, and no header is no page")
    func open() {
        #expect(OriginRule.allows("https://evil.example", []))
        #expect(OriginRule.allows("null", []))
        #expect(OriginRule.allows(nil, []))
        #expect(OriginRule.allows(nil, Self.list))
    }

    @Test(
        "an origin is allowed where scheme, host and port are those of the list",
        arguments: [
            ("https://app.example", true), ("HTTPS://App.Example", true), ("https://app.example:443", true),
            ("http://localhost:8080", true), ("https://[2001:db8::1]:8443", true),
            ("http://app.example", false), ("https://app.example:444", false), ("https://app.example.evil.org", false),
            ("https://evil-app.example", false), ("https://sub.app.example", false),
            ("https://app.example@evil.org", false),
            ("http://localhost", false), ("http://localhost:80800", false), ("null", false), ("", false), ("*", false),
            ("app.example", false), ("https://app.example/path", false), ("https://app.example?", false),
            ("file://app.example", false), ("https://app.example ", false), ("https://app.ex\u{E4}mple", false),
        ])
    func list(origin: String, isAllowed: Bool) {
        #expect(OriginRule.allows(origin, Self.list) == isAllowed)
    }

    @Test("a list with a mistake in it allows what is right in it, and a star is no origin")
    func mistakes() {
        #expect(OriginRule.allows("https://app.example", ["*", "", "https://app.example/"]))
        #expect(!OriginRule.allows("https://evil.example", ["*"]))
    }

    @Test("origins are stored in one form, and what is none is refused with its text")
    func normalized() throws {
        #expect(try OriginRule.normalized("HTTPS://App.Example:443/") == "https://app.example")
        #expect(try OriginRule.normalized("http://localhost:8080") == "http://localhost:8080")
        for text in [
            "*", "app.example", "https://app.example/x", "https://", "https://a b", "https://:80", "https://a:0",
        ] {
            let error = try #require(refusal { () throws(ServiceError) in try OriginRule.normalized(text) })
            #expect(error.code == .badRequest && error.reason.contains("'\(text)'"))
        }
    }
}
