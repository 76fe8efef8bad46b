package import RecordModel
import Synchronization
import WebServices

/// The OpenAPI document as something that answers are held against, and that remembers which of its parts were seen.
package final class Contract: Sendable {
    /// The document as the server sends it.
    package let document: JSONValue
    private let seen = Mutex<Set<String>>([])

    /// - Throws: where the document is not JSON.
    package init() throws { document = try JSONParser.parse(OpenAPIDocument.json) }

    /// What is wrong with an answer by the document; empty where nothing is.
    /// - Parameter path: the request's path, without its query.
    package func faults(method: String, path: String, status: Int, type: String, body: [UInt8]) -> [String] {
        guard let template = template(of: path) else {
            // What the document does not have is not there.
            return [404, 400].contains(status)
                ? [] : ["\(method) \(path) answered \(status), and is not in the document"]
        }
        guard let operation = document["paths"]?[template]?[method.lowercased()] else {
            return [404, 405, 200].contains(status) ? [] : ["\(method) \(template) answered \(status)"]
        }
        guard let answer = operation["responses"]?[String(status)].flatMap(resolved) else {
            return ["\(method) \(template): the document has no status \(status)"]
        }
        seen.withLock { seen in
            seen.insert("\(method) \(template)")
            seen.insert("\(method) \(template) \(status)")
        }
        let mediaType = type.split(separator: ";").first.map(String.init) ?? ""
        guard let schema = answer["content"]?[mediaType]?["schema"] else {
            return ["\(method) \(template) \(status): the document has no answer of the type '\(mediaType)'"]
        }
        let values: [JSONValue]
        switch mediaType {
        case "application/json":
            guard let json = try? JSONParser.parse(body) else {
                return ["\(method) \(template) \(status): the body is not JSON"]
            }
            values = [json]
        case "text/event-stream":
            var parser = EventParser()
            values = parser.take(body).map { event in
                .object([.init("event", .string(event.name)), .init("data", .string(event.data))])
            }
        default: values = [.string(String(decoding: body, as: UTF8.self))]
        }
        let schemas = JSONSchema(root: document)
        return values.flatMap { schemas.faults(of: $0, against: schema) }.map {
            "\(method) \(template) \(status): \($0)"
        }
    }

    /// A parameter or a response of the document, which may stand among its components.
    package func resolved(_ part: JSONValue) -> JSONValue? {
        guard let reference = part["$ref"]?.string else { return part }
        return JSONSchema(root: document).resolve(reference)
    }

    /// The document's path for a request's.
    private func template(of path: String) -> String? {
        guard case .object(let paths)? = document["paths"] else { return nil }
        let segments = path.split(separator: "/")
        return paths.map(\.key).first { template in
            let parts = template.split(separator: "/")
            return parts.count == segments.count
                && zip(parts, segments).allSatisfy { $0 == $1 || $0.hasPrefix("{") }
        }
    }

    /// Operations that no answer was seen of, and those without the answer that they exist for: 200, or 501.
    package func unseen() -> [String] {
        guard case .object(let paths)? = document["paths"] else { return [] }
        let seen = seen.withLock { $0 }
        var missing: [String] = []
        for path in paths {
            guard case .object(let methods) = path.value else { continue }
            for method in methods {
                let name = "\(method.key.uppercased()) \(path.key)"
                let aim = method.value["responses"]?["200"] == nil ? 501 : 200
                if !seen.contains("\(name) \(aim)") { missing.append("\(name) \(aim)") }
            }
        }
        return missing
    }
}
