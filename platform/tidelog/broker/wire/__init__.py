"""tidelog.broker.wire: frames, headers, the table of APIs, and what turns requests and answers into bytes and back."""
