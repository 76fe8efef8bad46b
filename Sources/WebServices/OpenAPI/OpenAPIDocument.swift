import RecordModel

/// The OpenAPI 3.1 document of the HTTP API: every path, request, answer and error that this version has.
///
/// The conformance tests hold every answer of the server against it.
package enum OpenAPIDocument {
    /// The document as JSON. The same on every call; made once.
    package static func json() -> [UInt8] { bytes }

    /// Every operation, in the order of the document.
    static let operations =
        databaseOperations + changeOperations + userOperations + laterOperations
        + keyValueOperations + healthOperations + adminOperations + clusterOperations + adminSchemaOperations
        + adminAccessOperations
        + signInOperations

    /// Every named shape, in the order of the document.
    static let components: [(name: String, description: String, shape: Shape)] =
        errorShapes + valueShapes + recordShapes + queryShapes + zoneShapes + changeShapes + userShapes
        + keyValueShapes + adminShapes + clusterShapes + adminSchemaShapes + adminAccessShapes + signInShapes

    private static let bytes: [UInt8] = {
        var writer = JSONWriter(capacity: 1 << 18)
        writer.object { writer in
            writer.member("openapi", "3.1.0")
            writer.key("info")
            writer.object { $0.info() }
            writer.key("tags")
            writer.array { $0.tags() }
            writer.key("paths")
            writer.object { $0.paths(operations) }
            writer.key("components")
            writer.object { $0.components(components) }
        }
        return writer.bytes
    }()
}

extension JSONWriter {
    fileprivate mutating func info() {
        member("title", "Zonekeeper")
        member("version", "1")
        member(
            "description",
            """
            A record store that speaks CloudKit Web Services. Requests carry `ckAPIToken` and, for what needs a user, \
            `ckWebAuthToken` in the URL, or the three headers of a server's key; administration needs the administrator's token in \
            `Authorization`. Bodies are JSON in \
            UTF-8 under any content type; members that the server does not know are ignored. Items of a batch that fail are \
            reported in their place, within HTTP 200.
            """)
        key("license")
        object { writer in
            writer.member("name", "Apache License 2.0")
            writer.member("identifier", "Apache-2.0")
        }
    }

    fileprivate mutating func tags() {
        for (name, description) in [
            ("Records", "Saving, deleting, reading and searching records."),
            ("Changes", "Following what changes in a zone or a database."),
            ("Zones", "The zones of a database."), ("Users", "The caller, and others who let themselves be found."),
            ("Later", "What CloudKit has and this version does not have yet: HTTP 501."),
            ("Preferences", "A user's key-value store."), ("Health", "For load balancers, and this document."),
            ("Administration", "Containers, schemas, users, tokens and the state of a node."),
            ("Sign-in", "Pages where users sign in, and the same for programs."),
        ] {
            object { writer in
                writer.member("name", name)
                writer.member("description", description)
            }
        }
    }

    fileprivate mutating func paths(_ operations: [APIOperation]) {
        var seen: Set<String> = []
        for path in operations.map(\.path) where seen.insert(path).inserted {
            key(path)
            object { writer in
                for operation in operations where operation.path == path {
                    writer.key(operation.method.rawValue)
                    writer.operation(operation)
                }
            }
        }
    }

    fileprivate mutating func components(_ shapes: [(name: String, description: String, shape: Shape)]) {
        key("schemas")
        object { writer in
            for (name, description, shape) in shapes {
                writer.key(name)
                writer.shape(shape, description: description)
            }
        }
        key("headers")
        object { writer in
            writer.header("X-Apple-Request-UUID", "The request's own name, which the logs have too.", .text)
            writer.header("Retry-After", "Seconds after which a retry may help.", .integer(minimum: 0))
            writer.header("Location", "Where the browser goes on.", .text)
            writer.header(
                "RateLimit-Policy", "The container's limit over all nodes, in requests (q) a second (w).",
                .string(example: "\"requests\";q=40;w=1"))
            writer.header(
                "RateLimit", "Requests that go through now (r), and seconds until there are more (t).",
                .string(example: "\"requests\";r=3;t=1"))
            writer.header(
                "X-Apple-CloudKit-Web-Auth-Token", "The session's next token, where the request had one of a sign-in.",
                .text)
        }
        key("securitySchemes")
        object { writer in
            writer.key("administrator")
            writer.object { writer in
                writer.member("type", "http")
                writer.member("scheme", "bearer")
            }
            for (scheme, place, name) in [
                ("apiToken", "query", "ckAPIToken"), ("webAuthToken", "query", "ckWebAuthToken"),
                ("serverKeyID", "header", "X-Apple-CloudKit-Request-KeyID"),
                ("serverKeyDate", "header", "X-Apple-CloudKit-Request-ISO8601Date"),
                ("serverKeySignature", "header", "X-Apple-CloudKit-Request-SignatureV1"),
            ] {
                writer.key(scheme)
                writer.object { writer in
                    writer.member("type", "apiKey")
                    writer.member("in", place)
                    writer.member("name", name)
                }
            }
        }
    }

    private mutating func header(_ name: String, _ description: String, _ shape: Shape) {
        key(name)
        object { writer in
            writer.member("description", description)
            writer.key("schema")
            writer.shape(shape)
        }
    }
}
