import Testing

@testable import WebServices

@Suite("Requests as they come in")
struct RequestURLTests {
    @Test("path and parameters are taken apart and decoded")
    func parts() {
        let url = RequestURL(
            target: "/database/1/iCloud.x/development/public/records/query?ckAPIToken=a%2Bb%3D&x&y=1=2")
        #expect(url.segments == ["database", "1", "iCloud.x", "development", "public", "records", "query"])
        #expect(url["ckAPIToken"] == "a+b=")
        #expect(url["x"] == "")
        #expect(url["y"] == "1=2")
        #expect(url["z"] == nil)
    }

    @Test(
        "what is not well-formed stays as it is, and nothing traps",
        arguments: ["", "?", "/", "/%", "/%4", "/%zz?%=%", "//a//b/?&&=&", "/%ff%fe"])
    func malformed(target: String) {
        let url = RequestURL(target: target)
        _ = url["a"]
        #expect(url.segments.count <= 2)
    }
}
