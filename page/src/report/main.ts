import "./report.css";
